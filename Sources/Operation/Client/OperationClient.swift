import FoundationEssentials
import ReactiveStreams
import Synchronization

/// Holds the stores of a program by their paths, and gives them what they have in common.
///
/// ```swift
/// let client = OperationClient()
/// let store = client.store(for: PlayerQuery(id: 7))
/// ```
///
/// A client can be used from any thread.
public final class OperationClient: Sendable {
  /// The lock guards the index; stores are made, set up and reported about without it.
  private let index: Mutex<StoreIndex>
  /// What the stores have in common.
  let hub: StoreHub
  let clock: any OperationClock
  private let retention: OperationRetention
  /// The timer of the retention, and which one it is.
  private let timer = Mutex((generation: 0, subscription: OperationSubscription.empty))
  /// What the contexts of stores begin with; set once, as they name the client.
  private let contexts: Mutex<Contexts>

  /// Creates a client without stores.
  ///
  /// - Parameters:
  ///   - defaults: What every store gets where its request says nothing else.
  ///   - clock: Where dates and waits come from.
  ///   - retention: How long stores stay that nobody uses; five minutes unless said otherwise.
  ///   - context: What every store's context begins with.
  public init(
    defaults: OperationDefaults = .standard,
    clock: any OperationClock = SystemClock(),
    retention: OperationRetention = .unusedFor(.seconds(300)),
    context: OperationContext = OperationContext()
  ) {
    self.clock = clock
    hub = StoreHub(clock: clock)
    self.retention = retention
    index = Mutex(StoreIndex(limit: retention.limit))
    contexts = Mutex(Contexts())
    let defaults = defaults.checked
    var context = context.leavingRun()
    context.operationClock = clock
    context.operationClient = self
    let made = Contexts(
      query: defaults.context(for: .query, over: context),
      pages: defaults.context(for: .pages, over: context),
      mutation: defaults.context(for: .mutation, over: context))
    contexts.withLock { $0 = made }
    hub.connect(to: self)
  }

  /// The store of a request; made, with an empty value, if there is none.
  public func store<Request: StatefulOperationRequest>(
    for request: Request
  ) -> OperationStore<Request.State> where Request.State: ValueInitializedState {
    store(for: request, initialValue: Request.State.emptyValue)
  }

  /// The store of a request; made, with a value, if there is none.
  public func store<Request: StatefulOperationRequest>(
    for request: Request, initialValue: @autoclosure () -> Request.State.StateValue
  ) -> OperationStore<Request.State> where Request.State: ValueInitializedState {
    store(for: request, initialState: Request.State(initialValue: initialValue()))
  }

  /// The store of a request; made, with a state, if there is none.
  ///
  /// A store that is there keeps its state and the modifiers of the request that it was made for.
  /// If it was made for another type of request, that is reported, and this request gets a store
  /// of its own on the same path. A path with an element that is not equal to itself, which could
  /// never be found again, is reported at each call, and gets a store that the client does not keep.
  public func store<Request: StatefulOperationRequest>(
    for request: Request, initialState: @autoclosure () -> Request.State
  ) -> OperationStore<Request.State> {
    let asked = Asked(by: request)
    if let store = find(asked)?.base as? OperationStore<Request.State> { return store }
    let store = OperationStore(
      request, state: initialState(), context: context(for: Request.State.kind),
      hub: hub, isCounted: asked.canBeFound)
    let kept = insert(OpaqueOperationStore(store), asked)?.base as? OperationStore<Request.State>
    return kept ?? store
  }

  /// What a client has to know of a request to find its store, or to keep it.
  struct Asked: Sendable {
    let path: OperationPath
    let type: RequestType
    let retention: OperationRetention?

    init<Request: StatefulOperationRequest>(by request: Request) {
      path = request.path
      type = RequestType(of: request)
      retention = request.retention
    }

    var canBeFound: Bool { path.unequalPosition == nil }
  }

  /// The store that is there, which has been used now.
  func find(_ asked: Asked) -> OpaqueOperationStore? {
    let now = hub.moment
    return index.withLock {
      $0.ask(
        for: asked.type, at: asked.path, retention: asked.retention ?? retention, at: now)
    }
  }

  /// The store on a path; on one with two types of request, that of the first.
  public func store(with path: OperationPath) -> OpaqueOperationStore? {
    index.withLock { $0.store(at: path) }
  }

  func read<Output: Sendable>(_ body: (borrowing StoreIndex) -> Output) -> Output {
    index.withLock { body($0) }
  }

  /// Changes the index, tells of it, and releases what has fallen out of it.
  private func update<Output: Sendable>(_ transition: (inout StoreIndex) -> Output) -> Output {
    let (output, dropped) = index.commit { (transition(&$0), $0.takeDropped()) }
    withExtendedLifetime(dropped) {}
    return output
  }

  func clear(at path: OperationPath, isPrefix: Bool) {
    leave(update { $0.remove(at: path, isPrefix: isPrefix) })
  }

  /// What the context of a store begins with.
  func context(for kind: OperationKind) -> OperationContext {
    contexts.withLock { $0[kind] }
  }

  private struct Contexts: Sendable {
    var query = OperationContext()
    var pages = OperationContext()
    var mutation = OperationContext()

    subscript(kind: OperationKind) -> OperationContext {
      switch kind {
      case .query: query
      case .pages: pages
      case .mutation: mutation
      }
    }
  }

  private func tell(_ occurrence: OperationClientEvent.Occurrence, of store: OpaqueOperationStore) {
    guard hub.events.isHeard else { return }
    hub.events.send(
      OperationClientEvent(
        date: clock.now(), path: store.path, kind: store.kind, occurrence: occurrence))
  }

  private func leave(_ removed: [OpaqueOperationStore]) {
    for store in removed {
      store.stopCounting()
      tell(.storeRemoved, of: store)
    }
    if !removed.isEmpty { hub.remove(removed.map(\.path)) }
  }

  func subscribe(
    _ handler: @escaping @Sendable (OperationStoreChange) -> Void
  ) -> OperationSubscription {
    let subscriber = Subscriber(handler)
    let id = index.commit { $0.deliveries.subscribe(subscriber) }
    return OperationSubscription { [weak self] in
      let removed = self?.index.withLock { $0.deliveries.unsubscribe(id) }
      withExtendedLifetime(removed) {}
    }
  }

  /// Puts a new store into the index; gives the one that stays if somebody else was faster.
  func insert(
    _ store: OpaqueOperationStore, _ asked: Asked
  ) -> OpaqueOperationStore? {
    if let position = asked.path.unequalPosition {
      reportUnequal(position, in: asked.path, of: asked.type.request)
      store.attachControllers()
      return nil
    }
    let retention = asked.retention ?? retention
    let now = clock.now()
    store.lastUse = StoreUse.Moment(now)
    if self.retention.limit != nil || retention.endsWithUse { store.watchUse() }
    let deadline = retention.patience.map(now.advanced)
    let (insertion, wake) = update { index in
      let insertion = index.insert(store, retention: retention, deadline: deadline)
      return (insertion, index.nextWake(at: now))
    }
    defer { if let wake { setTimer(wake, at: now) } }
    switch insertion {
    case .inserted(let left):
      tell(.storeAdded, of: store)
      leave(left)
      if asked.path.isEmpty { reportEmptyPath(of: asked.type.request) }
    case .clashed(let first):
      tell(.storeAdded, of: store)
      reportClash(at: asked.path, first: first, second: asked.type.request)
    case .present(let present):
      return present
    }
    store.attachControllers()
    return nil
  }

  private func reportEmptyPath(of type: any Any.Type) {
    OperationIssue(
      kind: .emptyPath,
      message: """
        The path of \(type) is empty, so every request without a path meets its store; \
        give it a path of its own.
        """
    ).report()
  }

  private func reportUnequal(_ position: Int, in path: OperationPath, of type: any Any.Type) {
    OperationIssue(
      kind: .unequalIdentity,
      message: """
        Element \(position) of \(path), the path of \(type), is not equal to itself, so nobody would \
        find the store again; it is not kept.
        """
    ).report()
  }

  private func reportClash(at path: OperationPath, first: any Any.Type, second: any Any.Type) {
    OperationIssue(
      kind: .pathClash,
      message: """
        \(path) is the path of \(first) and of \(second); each has a store of its own there, and a \
        look-up by path finds that of \(first). Give one of them another path.
        """
    ).report()
  }
}

extension OperationClient {
  /// Sets the timer for the first store that may leave.
  private func setTimer(_ wake: StoreIndex.Wake, at now: Date) {
    let subscription = clock.schedule(after: wake.date.duration(since: now)) {
      [weak self] in self?.sweep(wake.generation)
    }
    let old = timer.withLock { timer in
      guard wake.generation > timer.generation else { return subscription }
      defer { timer = (wake.generation, subscription) }
      return timer.subscription
    }
    old.cancel()
  }

  /// Lets go of all stores that nobody uses, the least recently used one first.
  func evictUnused() {
    let unused = index.withLock { $0.mortalStores }.map { ($0, $0.useMark) }
      .filter { !$0.0.isUsed }.sorted { $0.1.lastUse.date < $1.1.lastUse.date }
    leave(update { $0.settle(unused.map { .leave($0, $1) }) })
  }

  /// Lets go of the stores whose time is over.
  private func sweep(_ generation: Int) {
    let now = clock.now()
    let due = update { $0.takeDue(at: now, generation: generation) }
    let verdicts = due.map { candidate -> StoreIndex.Verdict in
      let store = candidate.store
      let mark = store.useMark
      // Not again and again while it is used, however short its patience is.
      if store.isUsed || !mark.isNoted {
        return .stay(store, until: now.advanced(by: max(candidate.patience, 1)))
      }
      let end = mark.lastUse.date.advanced(by: candidate.patience)
      return now.duration(since: end) >= .zero
        ? .leave(store, mark) : .stay(store, until: end)
    }
    let (left, wake) = update { ($0.settle(verdicts), $0.nextWake(at: now)) }
    leave(left)
    if let wake { setTimer(wake, at: now) }
  }
}

extension OperationClient: StoreHost {
  func useChanged(of store: OpaqueOperationStore, _ change: StoreUse.Change) {
    leave(update { $0.useChanged(of: store, change) })
  }

  func stores(at path: OperationPath) -> [OpaqueOperationStore] {
    index.withLock { $0.stores(at: path) }
  }

  func hasStore(at path: OperationPath) -> Bool { index.withLock { $0.hasStore(at: path) } }
}

extension OperationClient {
  @TaskLocal private static var scoped: OperationClient?
  private static let ofProcess = OperationClient()

  /// The client of the process, or the one that `withCurrent(_:operation:)` put in its place.
  public static var shared: OperationClient { scoped ?? ofProcess }

  /// Puts a client in the place of ``shared`` for `operation` and the tasks that it starts.
  public static func withCurrent<Output>(
    _ client: OperationClient, operation: () throws -> Output
  ) rethrows -> Output {
    try $scoped.withValue(client, operation: operation)
  }

  /// Puts a client in the place of ``shared`` for `operation` and the tasks that it starts.
  nonisolated(nonsending) public static func withCurrent<Output>(
    _ client: OperationClient, operation: nonisolated(nonsending) () async throws -> Output
  ) async rethrows -> Output {
    try await $scoped.withValue(client, operation: operation)
  }
}

extension OperationContext {
  /// The client of the store that a run belongs to; `nil` without one, or when it is gone.
  ///
  /// The context does not keep its client alive. A store that has a client gives its runs that one,
  /// also where the context that is passed to them has another.
  public var operationClient: OperationClient? {
    get { self[ClientKey.self].client }
    set { self[ClientKey.self] = WeakClient(newValue) }
  }

  private enum ClientKey: Key {
    static var defaultValue: WeakClient { WeakClient(nil) }
  }

  private final class WeakClient: Sendable, Equatable, StoreBound {
    weak let client: OperationClient?

    init(_ client: OperationClient?) {
      self.client = client
    }

    static func == (lhs: WeakClient, rhs: WeakClient) -> Bool { lhs.client === rhs.client }
  }
}
