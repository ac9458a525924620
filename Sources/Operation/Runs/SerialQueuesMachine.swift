/// The machine of serialized and limited runs: a queue for each scope, whose first runs, as many as the
/// limit of the scope, are the current ones.
///
/// Of several limits of a scope the lowest one applies until the queue is empty.
///
/// A scope is stored while its queue has a run.
struct SerialQueuesMachine<Waiter: Sendable>: Sendable {
  private struct Turn: Sendable, Identifiable {
    let run: TaskNode
    /// The waiter of a queued run whose task waits already.
    var waiter: Waiter?

    var id: OperationTaskID { run.id }
  }

  /// What is left to do after a run was removed from its queue.
  struct Departure: Sendable {
    /// The run itself, to be released without the lock.
    var run: TaskNode?
    /// The waiter of the run itself.
    var own: Waiter?
    /// The waiter of the run that has become a current one.
    var next: Waiter?
    /// The scope, if its queue is empty now. It is the user's, and so is released without the lock.
    var emptied: SerialScope?
  }

  private struct Queue: Sendable {
    var turns = IdentifiedArrayOf<Turn>()
    var limit: Int

    mutating func append(_ run: TaskNode, limit: Int) {
      self.limit = min(self.limit, limit)
      turns.append(Turn(run: run))
    }
  }

  private var scopes: [SerialScope: Queue] = [:]

  var isEmpty: Bool { scopes.isEmpty }

  /// Returns the run that all others of a scope wait for; `nil` if there can be several.
  func currentRun(in scope: SerialScope) -> TaskNode? {
    guard let queue = scopes[scope], queue.limit == 1 else { return nil }
    return queue.turns.first?.run
  }

  /// Returns how many of some runs are no current runs of their queue.
  func waitingCount(of ids: [OperationTaskID], in scope: SerialScope) -> Int {
    guard let queue = scopes[scope] else { return 0 }
    return ids.count { id in queue.turns.index(id: id).map { $0 >= queue.limit } ?? false }
  }

  mutating func append(_ run: TaskNode, to scope: SerialScope) {
    scopes[scope, default: Queue(limit: scope.limit)].append(run, limit: scope.limit)
  }

  /// Lets a queued run wait. Returns the waiter to continue: this one, if the run is a current one already
  /// or has left the queue, or that of an earlier launch of the run.
  mutating func wait(for id: OperationTaskID, in scope: SerialScope, waiter: Waiter) -> Waiter? {
    guard let queue = scopes[scope], let index = queue.turns.index(id: id), index >= queue.limit
    else { return waiter }
    let replaced = queue.turns[index].waiter
    scopes[scope]?.turns.update(id: id) { $0.waiter = waiter }
    return replaced
  }

  /// Removes a run from its queue, wherever it is.
  mutating func remove(_ id: OperationTaskID, from scope: SerialScope) -> Departure {
    guard let index = scopes.index(forKey: scope),
      let place = scopes.values[index].turns.index(id: id)
    else { return Departure() }
    let turn = scopes.values[index].turns.remove(at: place)
    var departure = Departure(run: turn.run, own: turn.waiter)
    let (limit, count) = (scopes.values[index].limit, scopes.values[index].turns.count)
    if count == 0 {
      departure.emptied = scopes.remove(at: index).key
    } else if place < limit, limit <= count {
      scopes.values[index].turns.update(at: limit - 1) { departure.next = $0.waiter.take() }
    }
    return departure
  }
}
