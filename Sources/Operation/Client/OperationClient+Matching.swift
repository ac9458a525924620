public import ReactiveStreams

extension OperationClient {
  /// The stores whose paths begin with `path`, which may be empty.
  ///
  /// It costs the length of the path and the number of stores that it finds, whatever the client
  /// holds.
  ///
  /// - Parameters:
  ///   - path: What the paths begin with.
  ///   - filter: What the stores have to be beside that.
  public func stores(
    matching path: OperationPath, where filter: OperationStoreFilter = []
  ) -> OperationStoreCollection<OpaqueOperationStore> {
    let stores = read { $0.stores(matching: path) }
    return OperationStoreCollection(
      filter.isEmpty ? stores : stores.filter(filter.accepts), path: \.path)
  }

  /// The stores with a state of one type whose paths begin with `path`, which may be empty.
  ///
  /// - Parameters:
  ///   - path: What the paths begin with.
  ///   - state: The type of the state; stores with another one are left out.
  ///   - filter: What the stores have to be beside that.
  public func stores<State>(
    matching path: OperationPath, of state: State.Type, where filter: OperationStoreFilter = []
  ) -> OperationStoreCollection<OperationStore<State>> {
    let stores = stores(matching: path, where: filter)
    return OperationStoreCollection(
      stores.compactMap { $0.base as? OperationStore<State> }, path: \.path)
  }

  /// Has the stores below a path to oneself, each as `OperationStore.withExclusiveAccess` has it,
  /// and tells the subscribers of each once, at the end, when all of them are free again.
  ///
  /// The stores are taken in one order throughout the process, so two such calls never wait for
  /// each other. `body` must not block.
  public func withStores<State, Output>(
    matching path: OperationPath, of state: State.Type, where filter: OperationStoreFilter = [],
    _ body: (OperationStoreCollection<OperationStore<State>>) throws -> Output
  ) rethrows -> Output {
    let stores = stores(matching: path, of: state, where: filter)
    let ordered = stores.sorted { ObjectIdentifier($0) < ObjectIdentifier($1) }
    for store in ordered { store.beginExclusiveAccess() }
    defer {
      let left = ordered.map { $0.opened() }
      for (store, left) in zip(ordered, left) { store.finish(left) }
    }
    return try body(stores)
  }

  /// Takes the store on a path out of the client. Those who hold it can go on with it; the next who
  /// asks for the path gets a new one.
  public func clearStore(with path: OperationPath) {
    clear(at: path, isPrefix: false)
  }

  /// Takes the stores below a path out of the client, as ``clearStore(with:)`` does.
  public func clearStores(matching path: OperationPath = []) {
    clear(at: path, isPrefix: true)
  }

  /// Calls `onChange` when stores below a path are made or taken out, in the order in which that
  /// happens and with no lock held.
  public func subscribe(
    matching path: OperationPath = [],
    onChange: @escaping @Sendable (OperationStoreChange) -> Void
  ) -> OperationSubscription {
    subscribe { change in
      if let change = change.restricted(to: path) { onChange(change) }
    }
  }

  /// The stores that are made or taken out below a path, from now on; nothing is dropped.
  public func storeChanges(
    matching path: OperationPath = []
  ) -> EventStream<OperationStoreChange> {
    EventStream(
      StreamSource { [self] handler in
        subscribe(matching: path) { handler(.element($0)) }
      }, buffering: .all)
  }
}
