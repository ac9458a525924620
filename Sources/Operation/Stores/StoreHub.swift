import ReactiveStreams
public import Synchronization

/// Where a hub finds the stores of its client.
protocol StoreHost: AnyObject, Sendable {
  /// The stores on a path, which are several if requests clash there.
  func stores(at path: OperationPath) -> [OpaqueOperationStore]
  /// A store began to be used, or ended.
  func useChanged(of store: OpaqueOperationStore, _ change: StoreUse.Change)
}

/// What the stores of a client have in common: the turns of their serialised runs, how many are under
/// way, and which of them reads which.
///
/// Stores hold their hub, and the hub does not hold them, so that a store may outlive its client.
/// One lock guards the graph, and one the reference to the client; no store is called under either.
@usableFromInline final class StoreHub: Sendable {
  @usableFromInline let turns = SerialTurns()
  @usableFromInline let activity = ActivityMeter()
  @usableFromInline let events = EventMeter()
  private let clock: any OperationClock
  private let isSystemTime: Bool
  private let graph = Mutex(DependencyGraph())
  @usableFromInline let isRead = Atomic(false)
  private let host = Mutex(WeakHost())

  private struct WeakHost: Sendable {
    weak var host: (any StoreHost)?
  }

  @usableFromInline init(clock: any OperationClock = SystemClock()) {
    self.clock = clock
    isSystemTime = clock is SystemClock
  }

  /// The present moment, for uses of stores.
  var moment: StoreUse.Moment { isSystemTime ? .soon : StoreUse.Moment(clock.now()) }

  func connect(to client: any StoreHost) {
    host.withLock { $0.host = client }
  }

  private var client: (any StoreHost)? { host.withLock { $0.host } }

  private func stores(at path: OperationPath) -> [OpaqueOperationStore] {
    client?.stores(at: path) ?? []
  }

  /// Whether a run has ever read another request.
  @inlinable var hasReaders: Bool { isRead.load(ordering: .sequentiallyConsistent) }

  /// Notes when a use has ended.
  @usableFromInline func note(_ change: StoreUse.Change, of use: borrowing StoreUse) {
    if !change.isUsed { use.lastUse = moment }
  }

  @usableFromInline func useChanged(of store: OpaqueOperationStore, _ change: StoreUse.Change) {
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
      return graph.note(run.id, of: place.path, reads: other)
    }
  }

  /// A run has ended; gives the circle that it has closed.
  func end(
    _ run: OperationTaskID, of path: OperationPath, isCancelled: Bool
  ) -> OperationDependencyError? {
    let circle = graph.withLock { $0.end(run, of: path, isCancelled: isCancelled) }
    // One that ends after its store has left the client leaves nothing behind.
    if stores(at: path).isEmpty { remove([path]) }
    return circle
  }

  /// The stores on these paths have left the client.
  func remove(_ paths: [OperationPath]) {
    guard hasReaders else { return }
    let left = paths.filter { stores(at: $0).isEmpty }
    graph.withLock { graph in
      for path in left { graph.remove(path) }
    }
  }

  /// Marks stores, and all that depend on them, as out of date, and then runs those of them that
  /// somebody observes, each once, and each after those that it depends on.
  ///
  /// Paths that are read, but whose stores have left, are passed where `isStart` says so.
  func invalidate(
    _ starts: [OpaqueOperationStore], left isStart: (OperationPath) -> Bool = { _ in false }
  ) {
    for store in starts { store.perform(.mark) }
    guard hasReaders else {
      for store in starts { store.perform(.rerun(because: .invalidation, after: [:])) }
      return
    }
    var found = Dictionary(grouping: starts, by: \.path)
    for path in graph.withLock({ $0.left }) where found[path] == nil && isStart(path) {
      found[path] = []
    }
    let roots = Set(found.keys)
    let order = markReaders(of: Array(roots), in: &found)
    var runs: [OperationPath: TaskDependencies] = [:]
    for step in order {
      var earlier: TaskDependencies = [:]
      for case let others? in step.reads.map({ runs[$0] }) {
        if earlier.isEmpty { earlier = others } else { earlier.merge(others) { first, _ in first } }
      }
      let cause: OperationRun.Cause = roots.contains(step.path) ? .invalidation : .dependency
      let own = (found[step.path] ?? []).compactMap {
        $0.perform(.rerun(because: cause, after: earlier))
      }
      // Who reads something that nobody observes comes after what that reads.
      if !own.isEmpty { earlier = [:] }
      for run in own { earlier[run.node.id] = run }
      runs[step.path] = earlier
    }
  }

  /// Marks readers until there are none that have come since: one that reads what is marked
  /// already sees that, and any other is in the graph.
  private func markReaders(
    of roots: [OperationPath], in found: inout [OperationPath: [OpaqueOperationStore]]
  ) -> [DependencyGraph.Step] {
    while true {
      let (order, edgeCount) = graph.withLock { ($0.steps(from: roots), $0.edgeCount) }
      var isComplete = true
      for step in order where found[step.path] == nil {
        isComplete = false
        let stores = stores(at: step.path)
        for store in stores { store.perform(.mark) }
        found[step.path] = stores
      }
      if isComplete || graph.withLock({ $0.edgeCount }) == edgeCount { return order }
    }
  }
}

/// What an invalidation does to a store.
@usableFromInline enum InvalidationStep: Sendable {
  /// Its value is out of date.
  case mark
  /// It runs when other runs have ended, if somebody observes it; the run is given back.
  case rerun(because: OperationRun.Cause, after: TaskDependencies)
}

extension OperationContext {
  /// The hub of the client, for stores that have one.
  @usableFromInline var hub: StoreHub? {
    get { self[HubKey.self] }
    set { self[HubKey.self] = newValue }
  }

  private enum HubKey: Key {
    static var defaultValue: StoreHub? { nil }
  }
}
