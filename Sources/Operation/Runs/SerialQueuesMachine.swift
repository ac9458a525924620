/// The machine of serialized and limited runs: a queue for each scope, whose first runs, as many as the
/// limit of the scope, are the current ones.
///
/// Of several limits of a scope the lowest one of the runs in its queue applies.
///
/// A scope is stored while its queue has a run.
struct SerialQueuesMachine<Waiter: Sendable>: Sendable {
  private struct Turn: Sendable, Identifiable {
    let run: TaskNode
    let limit: Int
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
    /// The waiters of the runs that have become current ones.
    var next: [Waiter] = []
    /// The scope, if its queue is empty now. It is the user's, and so is released without the lock.
    var emptied: SerialScope?
  }

  private struct Queue: Sendable {
    var turns = IdentifiedArrayOf<Turn>()
    /// The number of runs with each limit.
    private var limits: [Int: Int] = [:]

    var limit: Int { limits.keys.min() ?? .max }

    mutating func append(_ run: TaskNode, limit: Int) {
      turns.append(Turn(run: run, limit: limit))
      limits[limit, default: 0] += 1
    }

    mutating func remove(at place: Int) -> Departure {
      // The removed run may be a current one. Those have no waiters.
      let firstQueued = limit - 1
      let turn = turns.remove(at: place)
      limits[turn.limit]? -= 1
      if limits[turn.limit] == 0 { limits[turn.limit] = nil }
      var departure = Departure(run: turn.run, own: turn.waiter)
      for index in (0..<min(limit, turns.count)).dropFirst(firstQueued) {
        turns.update(at: index) { $0.waiter.take() }.map { departure.next.append($0) }
      }
      return departure
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
    scopes[scope, default: Queue()].append(run, limit: scope.limit)
  }

  /// Lets a queued run wait. Returns the waiter to continue: this one, if the run is a current one already
  /// or has left the queue, or that of an earlier launch of the run.
  mutating func wait(for id: OperationTaskID, in scope: SerialScope, waiter: Waiter) -> Waiter? {
    guard let queue = scopes[scope], let index = queue.turns.index(id: id), index >= queue.limit
    else { return waiter }
    return scopes[scope]?.turns.update(at: index) { exchange(&$0.waiter, with: waiter) }
  }

  /// Removes a run from its queue, wherever it is.
  mutating func remove(_ id: OperationTaskID, from scope: SerialScope) -> Departure {
    guard let index = scopes.index(forKey: scope),
      let place = scopes.values[index].turns.index(id: id)
    else { return Departure() }
    var departure = scopes.values[index].remove(at: place)
    if scopes.values[index].turns.isEmpty { departure.emptied = scopes.remove(at: index).key }
    return departure
  }
}
