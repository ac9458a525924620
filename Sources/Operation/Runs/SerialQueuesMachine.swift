/// The machine of serialized runs: a queue for each scope, whose first run is the current one.
///
/// A scope is stored while its queue has a run.
struct SerialQueuesMachine<Waiter: Sendable>: Sendable {
  private struct Turn: Sendable, Identifiable {
    let id: OperationTaskID
    /// The waiter of a queued run whose task waits already.
    var waiter: Waiter?
  }

  /// The waiters that continue after a run has left its queue.
  struct Departure: Sendable {
    /// The waiter of the run itself.
    var own: Waiter?
    /// The waiter of the next run, if the run was the current one.
    var next: Waiter?
  }

  private var scopes: [SerialScope: IdentifiedArrayOf<Turn>] = [:]
  private var dropped: [SerialScope] = []

  var isEmpty: Bool { scopes.isEmpty }

  func currentRun(in scope: SerialScope) -> OperationTaskID? { scopes[scope]?.first?.id }

  mutating func append(_ id: OperationTaskID, to scope: SerialScope) {
    scopes[scope, default: []].append(Turn(id: id))
  }

  /// Lets a queued run wait. Returns `true` if it is the current run already, or has left the queue.
  mutating func wait(for id: OperationTaskID, in scope: SerialScope, waiter: Waiter) -> Bool {
    guard let queue = scopes[scope], queue.first?.id != id, queue.index(id: id) != nil else {
      return true
    }
    scopes[scope]?.update(id: id) { $0.waiter = waiter }
    return false
  }

  /// Removes a run from its queue, wherever it is.
  mutating func remove(_ id: OperationTaskID, from scope: SerialScope) -> Departure {
    let isCurrent = scopes[scope]?.first?.id == id
    guard let turn = scopes[scope]?.remove(id: id) else { return Departure() }
    var departure = Departure(own: turn.waiter)
    if scopes[scope]?.isEmpty == true {
      if let index = scopes.index(forKey: scope) { dropped.append(scopes.remove(at: index).key) }
    } else if isCurrent, let next = scopes[scope]?.first {
      scopes[scope]?.update(id: next.id) { departure.next = $0.waiter.take() }
    }
    return departure
  }

  /// Returns the scopes that were removed, to be released without the lock: they are the user's.
  mutating func takeDropped() -> [SerialScope] {
    defer { dropped = [] }
    return dropped
  }
}
