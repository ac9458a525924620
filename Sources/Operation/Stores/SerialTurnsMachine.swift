import ReactiveStreams

/// The machine of serialised runs: for each scope, whose turn it is and who waits.
///
/// A scope is there while somebody has its turn; the last one who ends takes it with him.
struct SerialTurnsMachine<Waiter: Sendable>: Sendable {
  private struct Scope: Sendable {
    var holder: OperationTaskID
    var waiting = FIFO<(id: OperationTaskID, waiter: Waiter)>()
  }

  private var scopes: [SerialScope: Scope] = [:]

  var isEmpty: Bool { scopes.isEmpty }

  /// Somebody asks for his turn; tells whether it is his at once.
  mutating func wait(for scope: SerialScope, _ id: OperationTaskID, waiter: Waiter) -> Bool {
    guard scopes[scope] != nil else {
      scopes[scope] = Scope(holder: id)
      return true
    }
    scopes[scope]?.waiting.append((id, waiter))
    return false
  }

  /// A turn is over; returns the one whose turn it is now.
  mutating func end(_ scope: SerialScope, _ id: OperationTaskID) -> Waiter? {
    guard scopes[scope]?.holder == id else { return nil }
    guard let next = scopes[scope]?.waiting.popFirst() else {
      scopes[scope] = nil
      return nil
    }
    scopes[scope]?.holder = next.id
    return next.waiter
  }
}

extension OperationContext {
  /// The turns of the client, for stores that have one.
  var serialTurns: SerialTurns? {
    get { self[SerialTurnsKey.self] }
    set { self[SerialTurnsKey.self] = newValue }
  }

  private enum SerialTurnsKey: Key {
    static var defaultValue: SerialTurns? { nil }
  }
}
