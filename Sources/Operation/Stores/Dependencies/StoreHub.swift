import ReactiveStreams
import Synchronization

/// Where a hub finds the stores of its client.
protocol StoreHost: AnyObject, Sendable {
  /// The stores on a path, which are several if requests clash there.
  func stores(at path: OperationPath) -> [OpaqueOperationStore]
  func hasStore(at path: OperationPath) -> Bool
  /// A store began to be used, or ended.
  func useChanged(of store: OpaqueOperationStore, _ change: StoreUse.Change)
}

/// What the stores of a client have in common: the turns of their serialised runs, how many are under
/// way, and which of them reads which.
///
/// Stores hold their hub, and the hub does not hold them, so that a store may outlive its client.
/// One lock guards the graph, and one the reference to the client; no store is called under either.
final class StoreHub: Sendable {
  let turns = SerialTurns()
  let activity = ActivityMeter()
  let events = EventMeter()
  private let clock: any OperationClock
  private let isSystemTime: Bool
  private let graph = Mutex(DependencyGraph())
  let isRead = Atomic(false)
  private let host = Mutex(WeakHost())

  private struct WeakHost: Sendable {
    weak var host: (any StoreHost)?
  }

  init(clock: any OperationClock = SystemClock()) {
    self.clock = clock
    isSystemTime = clock is SystemClock
  }

  /// The present moment, for uses of stores.
  var moment: StoreUse.Moment { isSystemTime ? .soon : StoreUse.Moment(clock.now()) }

  func connect(to client: any StoreHost) {
    host.withLock { $0.host = client }
  }

  private var client: (any StoreHost)? { host.withLock { $0.host } }

  private func hasStore(at path: OperationPath) -> Bool { client?.hasStore(at: path) ?? false }

  /// Whether a run has ever read another request.
  var hasReaders: Bool { isRead.load(ordering: .sequentiallyConsistent) }

  /// Notes when a use has ended.
  func noteEnd(_ change: StoreUse.Change, of use: borrowing StoreUse) {
    use.noteEnd(change, at: moment)
  }

  func useChanged(of store: OpaqueOperationStore, _ change: StoreUse.Change) {
    client?.useChanged(of: store, change)
  }

  /// Whether nothing is left of any dependency.
  var hasNoDependencies: Bool { graph.withLock { $0.isEmpty } }
}

extension StoreHub {
  /// A run reads the request on a path; gives the circle that this would close.
  func note(
    _ run: TaskNode, reads other: OperationPath
  ) -> OperationDependencyError? {
    guard let place = run.place, place.hub == ObjectIdentifier(self) else { return nil }
    isRead.store(true, ordering: .sequentiallyConsistent)
    return graph.withLock { graph in
      // A run that has ended takes nothing out of the graph any more.
      guard run.isUnderWay else { return nil }
      return graph.note(run.id, run, of: place.path, reads: other)
    }
  }

  /// The value on that path may be out of date when the run reads it.
  func note(_ run: TaskNode, readsOutdated other: OperationPath) {
    guard let path = run.place?.path else { return }
    graph.withLock { $0.note(run.id, of: path, readsOutdated: other) }
  }

  /// A new value has come where an outdated one was read: what has read that is out of date.
  ///
  /// - Parameter isWritten: Whether somebody has written the value. He may have another store to
  ///   himself, and must not wait for who has one of the readers.
  func invalidateOutdatedReaders(of path: OperationPath, isWritten: Bool) {
    let readers = graph.withLock { $0.takeOutdatedReaders(of: path) }
    if readers.isEmpty { return }
    if isWritten {
      Task.detached { self.invalidateReaders(readers) }
    } else {
      invalidateReaders(readers)
    }
  }

  private func invalidateReaders(_ readers: [OperationPath]) {
    let stores = readers.flatMap { client?.stores(at: $0) ?? [] }
    invalidate(stores, because: .dependency) { readers.contains($0) }
  }

  /// A run has ended; gives the circle that it has closed.
  ///
  /// One that ends after its store has left the client leaves nothing behind, and takes nothing from
  /// the store that stands there now.
  func end(
    _ run: OperationTaskID, of store: AnyObject, at path: OperationPath, isCancelled: Bool,
    isPart: Bool = false
  ) -> OperationDependencyError? {
    let isLeft = !(client?.stores(at: path).contains { $0.base === store } ?? false)
    let (circle, dropped) = graph.withLock {
      let circle = $0.end(run, of: path, isCancelled: isCancelled || isLeft, isPart: isPart)
      return (circle, $0.takeDropped())
    }
    withExtendedLifetime(dropped) {}
    if !hasStore(at: path) { remove([path]) }
    return circle
  }

  /// The stores on these paths have left the client.
  func remove(_ paths: [OperationPath]) {
    guard hasReaders else { return }
    let left = paths.filter { !hasStore(at: $0) }
    let dropped = graph.withLock { graph in
      for path in left { graph.remove(path) }
      return graph.takeDropped()
    }
    withExtendedLifetime(dropped) {}
  }

  /// Marks stores, and all that depend on them, as out of date, and then runs those of them that
  /// somebody observes, each once, and each after those that it depends on.
  ///
  /// Paths that are read, but whose stores have left, are passed where `isStart` says so.
  func invalidate(
    _ starts: [OpaqueOperationStore], because cause: OperationRun.Cause = .invalidation,
    left isStart: (OperationPath) -> Bool = { _ in false }
  ) {
    let free = starts.filter { store in
      store.perform(.mark)
      // Those that read it would find what was there before.
      return !store.atEndOfAccess { [self] in pass(on: [store], because: cause) }
    }
    pass(on: free, because: cause, left: isStart)
  }

  /// Marks all that depend on stores that are marked, and runs what somebody observes.
  private func pass(
    on starts: [OpaqueOperationStore], because cause: OperationRun.Cause,
    left isStart: (OperationPath) -> Bool = { _ in false }
  ) {
    guard hasReaders else {
      for store in starts { store.perform(.rerun(because: cause, after: [])) }
      return
    }
    var roots: [OperationPath.Key: Passed] = [:]
    for store in starts {
      roots[OperationPath.Key(store.path), default: Passed(isRoot: true)].stores.append(store)
    }
    for path in graph.withLock({ $0.left })
    where roots[OperationPath.Key(path)] == nil && isStart(path) {
      roots[OperationPath.Key(path)] = Passed(isRoot: true)
    }
    let (steps, passed) = markReaders(of: roots)
    // What comes after each step: its own runs, or, if nobody observes it, those that it comes after.
    var runs: [[TaskDependency]] = []
    runs.reserveCapacity(steps.count)
    for index in steps.indices {
      let earlier = Self.union(of: steps[index].reads.lazy.map { runs[$0] })
      let cause = passed[index].isRoot ? cause : .dependency
      let own = passed[index].stores.compactMap {
        $0.perform(.rerun(because: cause, after: earlier))
      }
      runs.append(own.isEmpty ? earlier : own)
    }
  }

  /// The runs of several lists, each once.
  private static func union(of lists: some Collection<[TaskDependency]>) -> [TaskDependency] {
    if lists.count <= 1 { return lists.first ?? [] }
    var seen: Set<OperationTaskID> = []
    return lists.joined().filter { seen.insert($0.node.id).inserted }
  }

  /// What an invalidation has found on a path.
  private struct Passed: Sendable {
    let isRoot: Bool
    var stores: [OpaqueOperationStore] = []
  }

  /// Marks readers until there are none that have come since: one that reads what is marked
  /// already sees that, and any other is in the graph. Gives the way, and what was found on it.
  private func markReaders(
    of roots: [OperationPath.Key: Passed]
  ) -> ([DependencyGraph.Step], [Passed]) {
    let paths = roots.keys.map(\.path)
    let client = client
    var known = roots
    while true {
      let (steps, edgeCount) = graph.withLock { ($0.steps(from: paths), $0.edgeCount) }
      var isComplete = true
      let passed = steps.map { step in
        if let passed = known[OperationPath.Key(step.path)] { return passed }
        isComplete = false
        let stores = client?.stores(at: step.path) ?? []
        for store in stores { store.perform(.mark) }
        return Passed(isRoot: false, stores: stores)
      }
      if isComplete || graph.withLock({ $0.edgeCount }) == edgeCount { return (steps, passed) }
      for (step, passed) in zip(steps, passed) { known[OperationPath.Key(step.path)] = passed }
    }
  }
}

/// What an invalidation does to a store.
enum InvalidationStep: Sendable {
  /// Its value is out of date.
  case mark
  /// It runs when other runs have ended, if somebody observes it; the run is given back.
  case rerun(because: OperationRun.Cause, after: [TaskDependency])
}
