import ReactiveStreams

/// The machine of serialized runs: for each scope the current run, and the queue behind it.
///
/// A scope is stored while it has a current run.
struct SerialQueuesMachine<Waiter: Sendable>: Sendable {
  private struct Scope: Sendable {
    var current: OperationTaskID
    var queue = FIFO<OperationTaskID>()
  }

  private var scopes: [SerialScope: Scope] = [:]
  /// The queued runs whose tasks wait already.
  private var waiters: [OperationTaskID: Waiter] = [:]
  /// The queued runs that were removed.
  private var removed: Set<OperationTaskID> = []
  private var dropped: [SerialScope] = []

  var isEmpty: Bool { scopes.isEmpty && waiters.isEmpty && removed.isEmpty }

  mutating func append(_ id: OperationTaskID, to scope: SerialScope) {
    if scopes[scope] == nil {
      scopes[scope] = Scope(current: id)
    } else {
      scopes[scope]?.queue.append(id)
    }
  }

  /// Lets a queued run wait. Returns `true` if it is the current run already.
  mutating func wait(for id: OperationTaskID, in scope: SerialScope, waiter: Waiter) -> Bool {
    guard let current = scopes[scope]?.current, current != id else { return true }
    waiters[id] = waiter
    return false
  }

  /// Removes a run that has not waited. Returns the waiter of the next run, if it waits already.
  mutating func remove(_ id: OperationTaskID, from scope: SerialScope) -> Waiter? {
    if scopes[scope]?.current != id { removed.insert(id) }
    return end(id, in: scope)
  }

  /// Ends the current run. Returns the waiter of the next run, if it waits already.
  mutating func end(_ id: OperationTaskID, in scope: SerialScope) -> Waiter? {
    guard scopes[scope]?.current == id else { return nil }
    while let next = scopes[scope]?.queue.popFirst() {
      if removed.remove(next) != nil { continue }
      scopes[scope]?.current = next
      return waiters.removeValue(forKey: next)
    }
    if let index = scopes.index(forKey: scope) { dropped.append(scopes.remove(at: index).key) }
    return nil
  }

  /// Returns the scopes that were removed, to be released without the lock: they are the user's.
  mutating func takeDropped() -> [SerialScope] {
    defer { dropped = [] }
    return dropped
  }
}
