public import ReactiveStreams
import Synchronization

/// Creates and retains the stores of a program, each under the path of its request.
///
/// ```swift
/// let client = OperationClient()
/// let store = client.store(for: PlayerQuery(id: 7))
/// ```
///
/// A client can be used from any thread and any actor. It calls no handler and no request under a
/// lock. Only `==` and `hash(into:)` of path elements are called under its lock: they must be quick,
/// and must not call the library. A call that changes a store waits while another thread has exclusive
/// access to that store.
public final class OperationClient: DeliveryDrainer {
  /// The lock guards the index. Stores are created, set up and released without it.
  private let index: Mutex<StoreIndex>
  /// What the stores of this client share.
  let hub: StoreHub
  package let clock: any OperationClock
  private let retention: OperationRetention
  /// The initial contexts of stores. The lock is needed because they refer to the client, and so are
  /// stored at the end of its initialiser.
  private let contexts = Mutex(InitialContexts())
  /// Counts for ``statistics`` from the first time that they are read.
  let statisticsCounter = LastElement<StatisticsCounter>()
  /// The inspector, which ends with the client or its shutdown.
  let inspection = Mutex<(inspector: ObjectIdentifier, end: OperationSubscription)?>(nil)

  /// Creates a client without stores.
  ///
  /// - Parameters:
  ///   - defaults: The rules for requests whose modifiers do not state others.
  ///   - clock: The clock for the dates and waits of all stores.
  ///   - retention: How long the client retains stores that are not in use. The default is five
  ///     minutes.
  ///   - context: The values that the context of each store starts with.
  ///   - storage: Keeps the values and calls of requests with `persisted()` until the program starts
  ///     again. The default is none.
  public init(
    defaults: OperationDefaults = .standard,
    clock: any OperationClock = SystemClock(),
    retention: OperationRetention = .unusedFor(.seconds(300)),
    context: OperationContext = OperationContext(),
    storage: (any OperationStorage)? = nil
  ) {
    self.clock = clock
    hub = StoreHub(clock: clock, storage: storage)
    self.retention = retention
    index = Mutex(StoreIndex(limit: retention.limit))
    var context = context.leavingRun()
    context.operationClock = clock
    context.operationClient = self
    let initial = InitialContexts(defaults.checked, over: context)
    contexts.withLock { $0 = initial }
    hub.connect(to: self)
  }

  deinit { hub.valueWriter?.close() }

  /// Returns the store for a request, creating it with the empty value if needed.
  ///
  /// See ``store(for:initialState:)``.
  public func store<Request: StatefulOperationRequest>(
    for request: Request
  ) -> OperationStore<Request.State> where Request.State: ValueInitializedState {
    store(for: request, initialValue: Request.State.emptyValue)
  }

  /// Returns the store for a request, creating it with a value if needed.
  ///
  /// See ``store(for:initialState:)``.
  ///
  /// - Parameters:
  ///   - request: The request of the store.
  ///   - initialValue: The value of a new store. It is not evaluated if the store exists.
  public func store<Request: StatefulOperationRequest>(
    for request: Request, initialValue: @autoclosure () -> Request.State.StateValue
  ) -> OperationStore<Request.State> where Request.State: ValueInitializedState {
    store(for: request, initialState: Request.State(initialValue: initialValue()))
  }

  /// Returns the store for a request, creating it with a state if needed.
  ///
  /// A store that exists keeps its state, and the modifiers of the request that it was created for. One
  /// that was evicted is found, and retained again, as long as it is referenced.
  /// If it was created for another type of request, the clash is reported, and this request gets a
  /// store of its own on the same path. If an element of the path is not equal to itself, the store
  /// could not be found again: each call reports this, and returns a store that the client does not
  /// retain.
  ///
  /// The call is a use of the store, see ``OperationRetention``. It costs one hash of the path.
  ///
  /// - Parameters:
  ///   - request: The request of the store.
  ///   - initialState: The state of a new store. It is not evaluated if the store exists.
  public func store<Request: StatefulOperationRequest>(
    for request: Request, initialState: @autoclosure () -> Request.State
  ) -> OperationStore<Request.State> {
    let lookup = StoreIndex.Lookup(of: request, default: retention)
    let now = hub.elapsed()
    let (retained, isEvicted) = index.withLock { $0.use(lookup, at: now) }
    let existing = isEvicted ? readmit(lookup, at: now) : retained
    if let store = existing?.base as? OperationStore<Request.State> { return store }
    let unequalPosition = lookup.path.unequalPosition
    let store = OperationStore(
      request, state: initialState(), context: context(for: Request.State.kind, at: lookup.path),
      hub: hub)
    if let unequalPosition {
      store.endSaving(forgetting: false)
      reportUnequalElement(at: unequalPosition, in: lookup)
    } else if let present = insert(OpaqueOperationStore(store), for: lookup, at: now) {
      return present.base as? OperationStore<Request.State> ?? store
    }
    store.attachControllers()
    store.persistence?.restore(into: store)
    return store
  }

  /// Returns the store on a path, or `nil` if there is none.
  ///
  /// If requests of several types clash on the path, the store is that of the first one. The call is
  /// no use of the store. It costs one hash of the path.
  public func store(with path: OperationPath) -> OpaqueOperationStore? {
    index.withLock { $0.store(at: path) }
  }

  /// Calls a handler when stores below a path are added to the client or removed from it.
  ///
  /// - Parameters:
  ///   - path: The prefix of the paths. The default matches all stores.
  ///   - filter: The conditions that the stores satisfy when the handler is called. The default is none.
  ///   - onChange: Called in the order of the changes, by one thread at a time, on a thread that
  ///     changes the client. No lock is held.
  /// - Returns: The subscription. It does not keep the client alive.
  public func subscribe(
    matching path: OperationPath = [], where filter: OperationStoreFilter = [],
    onChange: @escaping @Sendable (OperationStoreChange) -> Void
  ) -> OperationSubscription {
    let subscriber = Subscriber<OperationStoreChange> { change in
      if let change = change.restricted(to: path, where: filter) { onChange(change) }
    }
    let id = update { $0.deliveries.subscribe(subscriber) }
    return OperationSubscription { [weak self] in
      withExtendedLifetime(self?.index.withLock { $0.deliveries.unsubscribe(id) }) {}
    }
  }

  /// The initial context of a store.
  func context(for kind: OperationKind, at path: OperationPath) -> OperationContext {
    contexts.withLock { $0.context(for: kind, at: path) }
  }

  /// Sets defaults for the stores below a path that are created from now on. Those of the longest
  /// matching path apply, and a modifier of the request replaces them.
  ///
  /// ```swift
  /// client.setDefaults(matching: ["users"]) { $0.staleTime = .seconds(60) }
  /// ```
  ///
  /// - Parameters:
  ///   - path: The prefix of the paths. An empty one, which matches all stores, is reported.
  ///   - change: Changes the defaults that were set for the same path before, or else those of the
  ///     client. It is called on the calling thread, with no lock held, and again if another call has set
  ///     defaults meanwhile.
  public func setDefaults(
    matching path: OperationPath, _ change: (inout OperationDefaults) -> Void
  ) {
    if path.isEmpty {
      OperationIssue.report(
        .emptyPath, "Defaults for the empty path replace those of the client for all stores.")
    }
    // A change that itself sets defaults is repeated, but not forever.
    for round in 1...8 {
      var (defaults, base, version) = contexts.withLock { $0.defaults(for: path) }
      change(&defaults)
      let new = InitialContexts.Rules(defaults.checked, over: base)
      let (isSet, old) = contexts.withLock {
        $0.set(new, for: path, at: round == 8 ? $0.version : version)
      }
      withExtendedLifetime(old) {}
      if isSet { return }
    }
  }

  /// Inserts a new store. Returns the store of another thread that has inserted one before.
  private func insert(
    _ store: OpaqueOperationStore, for lookup: borrowing StoreIndex.Lookup, at now: Duration
  ) -> OpaqueOperationStore? {
    let use = update(at: now) {
      $0.insert(store, for: lookup, at: now)
    } beforeDelivery: {
      // Before a handler runs the new store.
      if $0.store.id == store.id { send(.storeAdded, of: store) }
      didUse($0)
    }
    // Another store may have been on the path, and read, since this one was made.
    if hub.isRead(store.path) { store.store.noteRead() }
    // What is saved for the path is that of the first one.
    if use.clashing != nil { store.store.endSaving(forgetting: false) }
    if use.store.id != store.id { return use.store }
    if let first = use.clashing {
      OperationIssue.report(
        .pathClash,
        """
        \(lookup.path) is the path of \(first) and of \(lookup.type.request); each has a store of \
        its own there, and a look-up by path finds that of \(first). Give one of them another path.
        """)
    } else if lookup.path.isEmpty {
      OperationIssue.report(
        .emptyPath,
        """
        The path of \(lookup.type.request) is empty, so every request without a path shares its \
        store; give it a path of its own.
        """)
    }
    return nil
  }

  package var drainExecutor: (any TaskExecutor)? { clock.executor }

  package func drain(_ delivery: inout Delivery<OperationStoreChange>) { index.drain(&delivery) }

  /// Returns the store of a request if it was evicted and is still referenced.
  private func readmit(
    _ lookup: borrowing StoreIndex.Lookup, at now: Duration
  ) -> OpaqueOperationStore? {
    update(at: now, { $0.readmit(lookup, at: now) }, beforeDelivery: didUse)?.store
  }

  func didUse(_ use: StoreIndex.Use?) {
    guard let use else { return }
    if use.isReadmitted {
      _ = use.store.store.performInvalidation(.count)
      send(.storeAdded, of: use.store)
    }
    didEvict(use.evicted)
  }

  func didEvict(_ stores: [OpaqueOperationStore]) {
    for store in stores { _ = store.store.performInvalidation(.count) }
    for store in stores { send(.storeRemoved, of: store, isEviction: true) }
  }

  func read<Output: Sendable>(_ body: (borrowing StoreIndex) -> Output) -> Output {
    index.withLock { body($0) }
  }

  /// Changes the index and notifies its subscribers. The removed paths are released without the lock,
  /// because their elements are user code.
  ///
  /// - Parameters:
  ///   - now: The time of the change; `nil` for one after which no earlier timer is needed.
  ///   - beforeDelivery: Called with the output, without the lock, before the subscribers are notified.
  func update<Output: Sendable>(
    at now: Duration? = nil, _ transition: (inout StoreIndex) -> Output,
    beforeDelivery: (Output) -> Void = { _ in }
  ) -> Output {
    let ((output, timers, dropped), delivery) = index.perform { index in
      let output = transition(&index)
      let timers = now.flatMap { index.nextTimer(at: $0) }
      return (output, timers, index.entries.takeDropped())
    }
    beforeDelivery(output)
    if delivery.hasEvent { deliver(delivery) }
    withExtendedLifetime(dropped) {}
    if let now, let timers { setTimer(timers.new, insteadOf: timers.old, at: now) }
    return output
  }

  /// Removes stores, ends their counting, and removes their dependencies.
  func remove(_ stores: [OpaqueOperationStore]) {
    if stores.isEmpty { return }
    // Before another store can be on one of the paths.
    for store in stores { store.store.endSaving(forgetting: true) }
    _ = update {
      $0.remove(stores)
    } beforeDelivery: { removed in
      // Before a handler makes another store on the path.
      for store in stores { _ = store.store.performInvalidation(.count) }
      for store in removed { send(.storeRemoved, of: store) }
    }
    hub.remove(stores.lazy.map(\.path))
  }

  private func send(
    _ occurrence: OperationClientEvent.Occurrence, of store: OpaqueOperationStore,
    isEviction: Bool = false
  ) {
    guard hub.events.isObserved else { return }
    if hub.events.hasReader { hub.events.changes.append(store.store) }
    hub.events.send(
      OperationClientEvent(
        date: clock.now(), path: store.path, kind: store.store.kind, occurrence: occurrence,
        isEviction: isEviction))
  }

  private func reportUnequalElement(at position: Int, in lookup: borrowing StoreIndex.Lookup) {
    OperationIssue.report(
      .unequalIdentity,
      """
      Element \(position) of \(lookup.path), the path of \(lookup.type.request), is not equal to \
      itself, so the store could not be found again; the client does not retain it.
      """)
  }
}
