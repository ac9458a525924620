import ReactiveStreams

/// The machine of serialised runs: for each scope, whose turn it is and who is in the line.
///
/// A scope is there while somebody has its turn; the last one who ends takes it with him.
struct SerialTurnsMachine<Waiter: Sendable>: Sendable {
  private struct Scope: Sendable {
    var holder: OperationTaskID
    var line = FIFO<OperationTaskID>()
  }

  private var scopes: [SerialScope: Scope] = [:]
  /// Those in a line who have come so far that they wait.
  private var waiters: [OperationTaskID: Waiter] = [:]
  /// Those in a line who have gone.
  private var gone: Set<OperationTaskID> = []
  private var dropped: [SerialScope] = []

  var isEmpty: Bool { scopes.isEmpty && waiters.isEmpty && gone.isEmpty }

  /// Somebody takes a place in the line.
  mutating func enter(_ scope: SerialScope, _ id: OperationTaskID) {
    if scopes[scope] == nil {
      scopes[scope] = Scope(holder: id)
    } else {
      scopes[scope]?.line.append(id)
    }
  }

  /// Somebody in the line waits for his turn; tells whether it is his already.
  mutating func wait(for scope: SerialScope, _ id: OperationTaskID, waiter: Waiter) -> Bool {
    guard let holder = scopes[scope]?.holder, holder != id else { return true }
    waiters[id] = waiter
    return false
  }

  /// Somebody goes before he has waited; returns the one whose turn it is now, if he waits for it.
  mutating func leave(_ scope: SerialScope, _ id: OperationTaskID) -> Waiter? {
    if scopes[scope]?.holder != id { gone.insert(id) }
    return end(scope, id)
  }

  /// A turn is over; returns the one whose turn it is now, if he waits for it already.
  mutating func end(_ scope: SerialScope, _ id: OperationTaskID) -> Waiter? {
    guard scopes[scope]?.holder == id else { return nil }
    while let next = scopes[scope]?.line.popFirst() {
      if gone.remove(next) != nil { continue }
      scopes[scope]?.holder = next
      return waiters.removeValue(forKey: next)
    }
    if let index = scopes.index(forKey: scope) { dropped.append(scopes.remove(at: index).key) }
    return nil
  }

  /// Gives the scopes that are there no more, to be released without the lock: they are the user's.
  mutating func takeDropped() -> [SerialScope] {
    if dropped.isEmpty { return [] }
    defer { dropped = [] }
    return dropped
  }
}
