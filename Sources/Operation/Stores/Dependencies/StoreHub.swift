import ReactiveStreams
import Synchronization

/// The client of a hub, which finds its stores.
protocol StoreHost: AnyObject, Sendable {
  /// Returns the stores on a path: several, if requests clash there.
  func stores(at path: OperationPath) -> [OpaqueOperationStore]
  func hasStore(at path: OperationPath) -> Bool
  /// Whether a certain store is on a path.
  func hasStore(_ id: ObjectIdentifier, at path: OperationPath) -> Bool
  /// A use of a store has begun or ended.
  func useChanged(of store: OpaqueOperationStore, _ change: StoreUse.Change)
  /// An evicted store is not referenced any more.
  func wasReleased(_ id: ObjectIdentifier, at path: OperationPath)
}

/// What the stores of a client share: the queues of their serialized runs, their counts and events, and
/// the graph of their dependencies.
///
/// Stores retain their hub, and the hub retains no store, so that a store can outlive its client. The
/// exception is a store that has changed while an inspector is connected: the feed retains it until the
/// inspector has read the change. One lock guards the graph, under which the client may look for a store, and
/// one the reference to the client. No store is called under either.
final class StoreHub: Sendable {
  /// How far the shutdown of the client is.
  private enum Shutdown: UInt8, AtomicRepresentable {
    case none, hasBegun, hasCutOff
  }

  let queues = SerialQueues()
  let activity = ActivityMeter()
  let events = EventSender()
  private let clock: any OperationClock
  private let hasSystemClock: Bool
  /// Writes values into the storage of the client; `nil` without a storage.
  let valueWriter: StorageWriter?
  let outbox: OperationOutbox?
  private let graph = Mutex(DependencyGraph())
  private let isRead = Atomic(false)
  private let host = Mutex(WeakHost())
  private let shutdown = Atomic(Shutdown.none)
  /// Ends when the client is shut down. It sends nothing.
  let closing = Broadcast<Never>()

  private struct WeakHost: Sendable {
    weak var host: (any StoreHost)?
  }

  init(clock: any OperationClock = SystemClock(), storage: (any OperationStorage)? = nil) {
    self.clock = clock
    hasSystemClock = clock is SystemClock
    valueWriter = storage.map { StorageWriter($0, clock: clock, delay: .seconds(1)) }
    outbox = storage.map { [closing] in OperationOutbox($0, clock: clock, closing: closing) }
  }

  /// The time of the clock that does not jump, for the uses of stores.
  func elapsed() -> Duration {
    hasSystemClock ? SystemClock.coarseElapsed : clock.elapsed().limited
  }

  /// Whether the client was shut down, so that no run is started any more. Those in flight
  /// continue.
  var isClosed: Bool { shutdown.load(ordering: .acquiring) != .none }

  /// Whether a shutdown cancels the runs that have not ended in time, or has.
  var isCutOff: Bool { shutdown.load(ordering: .acquiring) == .hasCutOff }

  func close() {
    _ = shutdown.compareExchange(expected: .none, desired: .hasBegun, ordering: .releasing)
  }

  func cutOff() { shutdown.store(.hasCutOff, ordering: .releasing) }

  func connect(to client: any StoreHost) { host.withLock { $0.host = client } }

  /// The client; `nil` after it was deallocated, and for a store without a client.
  var client: (any StoreHost)? { host.withLock { $0.host } }

  /// Whether a run has ever read another request.
  var hasReaders: Bool { isRead.load(ordering: .sequentiallyConsistent) }

  /// Whether any run has read the request on a path, or it has read another one.
  func isRead(_ path: OperationPath) -> Bool { hasReaders && graph.withLock { $0.contains(path) } }

  /// Returns paths that a path reads, and paths that read it, at most as many of each as a limit.
  func dependencies(
    of path: OperationPath, limit: Int
  ) -> (reads: [OperationPath], readers: [OperationPath]) {
    hasReaders ? graph.withLock { $0.dependencies(of: path, limit: limit) } : ([], [])
  }

  /// Whether nothing is left of any dependency.
  var hasNoDependencies: Bool { graph.withLock { $0.isEmpty } }
}

// MARK: - Dependencies

extension StoreHub {
  /// Notes that a run reads the request on a path. Returns the cycle that this would close. A run
  /// without a store reads for the run of a store whose request has called it.
  ///
  /// - Parameter version: The version of the value that the run has read. It is noted only if the run has noted
  ///   before that it reads the path.
  func note(
    _ run: TaskNode, _ launch: Int = 0, reads other: OperationPath, at version: Int? = nil
  ) -> OperationDependencyError? {
    guard let run = run.storeRun, let origin = run.origin, origin.hub == ObjectIdentifier(self)
    else { return nil }
    isRead.store(true, ordering: .sequentiallyConsistent)
    return graph.withLock { graph in
      // A launch that has ended or was replaced is never removed from the graph again.
      guard run.isInRequest, !run.isReplaced(launch: launch) else { return nil }
      let id = LaunchID(run: run.id, launch: launch)
      return graph.note(id, run, of: origin.path, reads: other, at: version)
    }
  }

  /// Notes that the value on a path may be stale when a run reads it.
  func note(_ run: TaskNode, _ launch: Int = 0, readsOutdated other: OperationPath) {
    guard let run = run.storeRun, let path = run.origin?.path else { return }
    let id = LaunchID(run: run.id, launch: launch)
    graph.withLock { $0.note(id, of: path, readsOutdated: other) }
  }

  /// The version of the value on a path that the last completed run of another one has noted.
  func version(of other: OperationPath, readBy path: OperationPath) -> Int? {
    graph.withLock { $0.version(of: other, readBy: path) }
  }

  /// Forgets what the last completed run of a path has noted, because the value was written.
  func forgetVersions(readBy path: OperationPath) {
    graph.withLock { $0.forgetVersions(readBy: path) }
  }

  /// Invalidates the requests that read a stale value, because a new one has come.
  ///
  /// - Parameter isWritten: Whether the value was written, and not fetched. The writer may have
  ///   exclusive access to another store, and must not wait for the owner of a reader.
  func invalidateOutdatedReaders(of path: OperationPath, isWritten: Bool) {
    let readers = graph.withLock { $0.takeOutdatedReaders(of: path) }
    if readers.isEmpty { return }
    let invalidateReaders = { @Sendable [self] in
      let stores = readers.flatMap { client?.stores(at: $0) ?? [] }
      invalidate(because: .dependency, read: .at(readers)) { stores.forEach($0) }
    }
    if isWritten {
      Task.startUnawaited(on: clock.executor, invalidateReaders)
    } else {
      invalidateReaders()
    }
  }

  /// What the end of a run in the graph returns. It is released without a lock.
  struct Leftovers: Sendable {
    /// The client of the hub.
    fileprivate let client: (any StoreHost)?
    fileprivate var dropped: (any Sendable)?
    /// The cycle that the run has closed.
    fileprivate(set) var cycle: OperationDependencyError?
  }

  /// Called without a lock before ``end(_:of:at:isCancelled:isPart:_:)``. Returns `nil` if there is nothing to
  /// end, because no run has ever read another request.
  func beginEnd() -> Leftovers? { hasReaders ? Leftovers(client: client) : nil }

  /// Ends a launch of a run in the graph. It may be called under the lock of the store.
  ///
  /// A run that ends after its store was removed from the client leaves edges only while another request
  /// reads the path. If another store is on the path now, its edges are added to those of that store, and none
  /// are removed: a request that has awaited the run keeps its value.
  func end(
    _ run: LaunchID, of store: ObjectIdentifier, at path: OperationPath, isCancelled: Bool,
    isPart: Bool = false, _ leftovers: inout Leftovers?
  ) {
    if leftovers == nil { return }
    let client = leftovers?.client
    graph.withLock { graph in
      let isRemoved = client?.hasStore(store, at: path) != true
      let isReplaced = isRemoved && client?.hasStore(at: path) == true
      let isUnneeded = isReplaced && graph.dependencies(of: path, limit: 1).readers.isEmpty
      leftovers?.cycle = graph.end(
        run, of: path, isCancelled: isCancelled || isUnneeded, isPart: isPart || isReplaced)
      if isRemoved, !isReplaced { graph.remove(path) }
      leftovers?.dropped = graph.takeDropped()
    }
  }

  /// Notes that the stores on these paths were removed from the client.
  func remove(_ paths: some Sequence<OperationPath>) {
    guard hasReaders else { return }
    let client = client
    let dropped = graph.withLock { graph in
      // Looked up here, because a run of a new store on the path may end in between.
      for path in paths where client?.hasStore(at: path) != true { graph.remove(path) }
      return graph.takeDropped()
    }
    withExtendedLifetime((client, dropped)) {}
  }
}

// MARK: - Invalidation

/// A step of an invalidation in one store, or of its removal from the client.
enum InvalidationStep: Sendable {
  /// The store is counted in the client's activity if the client retains it, and otherwise not.
  case count
  /// The value is marked as invalidated.
  case mark
  /// The store runs after other runs have ended, if it is observed. The run is returned.
  case rerun(because: OperationRun.Cause, after: [TaskDependency])
}

/// What a step of an invalidation in one store leaves to do.
enum InvalidationOutcome: Sendable {
  /// Nothing: the store is not observed, and no other request depends on it.
  case done
  /// The invalidation goes on with what depends on the store, and with a run.
  case marked
  /// The same, at the end of the exclusive access of the calling thread: until then, readers would read
  /// the value before it.
  case inAccess
  /// A run answers the invalidation.
  case run(TaskDependency)

  var run: TaskDependency? {
    if case .run(let task) = self { task } else { nil }
  }
}

extension StoreHub {
  /// Invalidates stores and all that depend on them, and then runs those that are observed: each once,
  /// and each after those that it depends on. While the calling thread has exclusive access to one of the
  /// stores, runs would read its value before that, so they begin at the end.
  ///
  /// - Parameters:
  ///   - selection: Further paths that the invalidation begins with, where they are read. A path can have
  ///     readers, and no store any more.
  ///   - runsObserved: Whether the observed stores run.
  ///   - forEachStart: Calls a function with each of the stores.
  func invalidate(
    because cause: OperationRun.Cause = .invalidation,
    read selection: DependencyGraph.ReadPaths? = nil, runsObserved: Bool = true,
    _ forEachStart: ((OpaqueOperationStore) -> Void) -> Void
  ) {
    // Most stores are neither observed nor read, so they are visited once and not collected.
    var marked: [OpaqueOperationStore] = []
    var inAccess: [OpaqueOperationStore] = []
    forEachStart { store in
      switch store.store.performInvalidation(.mark) {
      case .done: break
      case .marked, .run: marked.append(store)
      case .inAccess: inAccess.append(store)
      }
    }
    let read = hasReaders ? graph.withLock { $0.paths(selection) } : []
    let accessed = Set(inAccess.map(\.path))
    let paths = accessed.isEmpty ? read : read.filter { !accessed.contains($0) }
    let runsNow = runsObserved && inAccess.isEmpty
    propagate(from: marked, and: paths, because: cause, runsObserved: runsNow)
    if inAccess.isEmpty { return }
    let starts = marked + inAccess
    afterAccess(to: inAccess) { [self] in
      propagate(from: starts, and: paths, because: cause, runsObserved: runsObserved)
    }
  }

  /// Performs an action when the calling thread has exclusive access to none of the stores any more.
  private func afterAccess(
    to stores: [OpaqueOperationStore], _ action: @escaping @Sendable () -> Void
  ) {
    let isDeferred = stores.contains { store in
      store.store.atEndOfAccess { [self] in afterAccess(to: stores, action) }
    }
    if !isDeferred { action() }
  }

  /// Marks all stores that depend on marked ones or on some paths, and runs those that are observed.
  private func propagate(
    from starts: [OpaqueOperationStore], and paths: [OperationPath],
    because cause: OperationRun.Cause, runsObserved: Bool
  ) {
    guard hasReaders else {
      for store in starts where runsObserved {
        _ = store.store.performInvalidation(.rerun(because: cause, after: []))
      }
      return
    }
    var roots: [OperationPath: Visited] = [:]
    for store in starts { roots[store.path, default: Visited(isRoot: true)].stores.append(store) }
    for path in paths where roots[path] == nil { roots[path] = Visited(isRoot: true) }
    let (steps, visited) = markReaders(of: roots)
    if !runsObserved { return }
    // The runs that later steps wait for: those of a step itself, or, if its stores are not observed,
    // those that it waits for.
    var runs: [[TaskDependency]] = []
    runs.reserveCapacity(steps.count)
    for index in steps.indices {
      let earlier = Self.union(of: steps[index].reads.lazy.map { runs[$0] })
      let cause = visited[index].isRoot ? cause : .dependency
      let own = visited[index].stores.compactMap {
        $0.store.performInvalidation(.rerun(because: cause, after: earlier)).run
      }
      runs.append(own.isEmpty ? earlier : own)
    }
  }

  /// Returns the runs of several lists, each once.
  private static func union(of lists: some Collection<[TaskDependency]>) -> [TaskDependency] {
    if lists.count <= 1 { return lists.first ?? [] }
    var seen: Set<OperationTaskID> = []
    return lists.joined().filter { seen.insert($0.node.id).inserted }
  }

  /// The stores on a path that an invalidation has visited.
  private struct Visited: Sendable {
    let isRoot: Bool
    var stores: [OpaqueOperationStore] = []
  }

  /// Marks readers until no more have been added to the graph. A request that reads a marked value notes
  /// that itself, and any other is in the graph.
  private func markReaders(
    of roots: [OperationPath: Visited]
  ) -> ([DependencyGraph.Step], [Visited]) {
    let paths = Array(roots.keys)
    let client = client
    var known = roots
    while true {
      let (steps, edgeCount) = graph.withLock { ($0.steps(from: paths), $0.edgeCount) }
      var isComplete = true
      let visited = steps.map { step in
        if let visited = known[step.path] { return visited }
        isComplete = false
        let stores = client?.stores(at: step.path) ?? []
        for store in stores { _ = store.store.performInvalidation(.mark) }
        return Visited(isRoot: false, stores: stores)
      }
      if isComplete || graph.withLock({ $0.edgeCount }) == edgeCount { return (steps, visited) }
      for (step, visited) in zip(steps, visited) { known[step.path] = visited }
    }
  }
}
