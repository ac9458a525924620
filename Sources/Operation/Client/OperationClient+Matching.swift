public import ReactiveStreams

extension OperationClient {
  /// Returns the stores whose paths begin with `path`.
  ///
  /// It costs the length of the path and the number of stores that it finds, whatever the size of
  /// the client. It is no use of the stores.
  ///
  /// - Parameters:
  ///   - path: The prefix of the paths. The empty path matches all stores.
  ///   - filter: The conditions that the stores satisfy as well. The default is none.
  public func stores(
    matching path: OperationPath, where filter: OperationStoreFilter = []
  ) -> OperationStoreCollection<OpaqueOperationStore> {
    OperationStoreCollection(stores: found(matching: path, where: filter), path: \.path)
  }

  func found(
    matching path: OperationPath, where filter: OperationStoreFilter
  ) -> [OpaqueOperationStore] {
    var found: [OpaqueOperationStore] = []
    forEachStore(matching: path) { if filter.accepts($0) { found.append($0) } }
    return found
  }

  /// Calls a function with the stores whose paths begin with `path`, without the lock.
  func forEachStore(matching path: OperationPath, _ body: (OpaqueOperationStore) -> Void) {
    read { $0.entries.tree(matching: path) }.forEach { $0.forEachStore(body) }
  }

  /// Returns the stores with one type of state whose paths begin with `path`.
  ///
  /// The stores are found at the cost of ``stores(matching:where:)``.
  ///
  /// - Parameters:
  ///   - path: The prefix of the paths. The empty path matches all stores.
  ///   - state: The type of the state. Stores with another one are not returned.
  ///   - filter: The conditions that the stores satisfy as well. The default is none.
  public func stores<State>(
    matching path: OperationPath, of state: State.Type, where filter: OperationStoreFilter = []
  ) -> OperationStoreCollection<OperationStore<State>> {
    let found = found(matching: path, where: filter)
    return OperationStoreCollection(
      stores: found.compactMap { $0.base as? OperationStore<State> }, path: \.path)
  }

  /// Calls `body` with exclusive access to the stores whose paths begin with `path`.
  ///
  /// The access to each store is that of `OperationStore.withExclusiveAccess`. Each store notifies
  /// its subscribers once, when the access to all stores has ended. The call waits for other threads
  /// that have exclusive access to one of the stores. The stores are acquired in one order
  /// throughout the process, so two such calls never wait for each other.
  ///
  /// The stores are found at the cost of ``stores(matching:where:)``.
  ///
  /// - Parameters:
  ///   - path: The prefix of the paths. The empty path matches all stores.
  ///   - state: The type of the state. Stores with another one are not included.
  ///   - filter: The conditions that the stores satisfy as well. The default is none.
  ///   - body: Called once, on the calling thread. It must not block.
  /// - Throws: The error of `body`. The writes that it made before are kept.
  public func withStores<State, Output>(
    matching path: OperationPath, of state: State.Type, where filter: OperationStoreFilter = [],
    _ body: (OperationStoreCollection<OperationStore<State>>) throws -> Output
  ) rethrows -> Output {
    let stores = stores(matching: path, of: state, where: filter)
    let ordered = stores.sorted { ObjectIdentifier($0) < ObjectIdentifier($1) }
    for store in ordered { store.beginExclusiveAccess() }
    defer {
      let ended = ordered.map { $0.endAccess() }
      for access in ended { access.finish() }
    }
    return try body(stores)
  }

  /// Displays an edit of the values below a path while the work that makes it true runs.
  ///
  /// It does for several stores what `OperationStore.optimistically(_:while:)` does for one.
  ///
  /// The stores are found at the cost of ``stores(matching:where:)``.
  ///
  /// - Parameters:
  ///   - path: The prefix of the paths. The empty path matches all stores.
  ///   - state: The type of the state. Stores with another one, and stores that are created while the
  ///     work runs, are not edited.
  ///   - filter: The conditions that the stores satisfy when the work begins. The default is none.
  ///   - edit: Changes a value. It is called on any thread whenever the displayed value is computed,
  ///     with no lock held. It must not block.
  ///   - work: Makes the edit true. It runs on the caller's actor.
  /// - Returns: The output of `work`.
  /// - Throws: The error of `work`, after the edit was removed.
  @discardableResult
  nonisolated(nonsending) public func optimistically<State: EditableState, Output, Failure>(
    matching path: OperationPath, of state: State.Type, where filter: OperationStoreFilter = [],
    _ edit: @escaping @Sendable (inout State.StateValue) -> Void,
    while work: nonisolated(nonsending) () async throws(Failure) -> Output
  ) async throws(Failure) -> Output {
    let edits = stores(matching: path, of: state, where: filter).map { ($0, $0.beginEdit(edit)) }
    do throws(Failure) {
      let output = try await work()
      for (store, id) in edits { await store.settleEdit(id) }
      return output
    } catch {
      for (store, id) in edits { store.endEdit(id, isSuccess: false) }
      throw error
    }
  }

  /// Removes the stores on a path from the client.
  ///
  /// A removed store continues to work for its owners. An observed `map` of its query is one of them: it
  /// follows the removed store until its observers have ended. The next `store(for:)` for the path creates a
  /// new one. What is saved for the path is removed as well, also without a store. The exception is a value
  /// with a name of its own: it is removed only together with its store.
  public func clearStore(with path: OperationPath) {
    removeSaved(at: path, isPrefix: false)
    remove(read { $0.stores(at: path) })
  }

  /// Removes the stores whose paths begin with `path` from the client.
  ///
  /// See ``clearStore(with:)``. Without a filter, what is saved below the path is removed, too, whether it
  /// has a store or not. A value with a name of its own is removed with its store. The empty path removes all
  /// values.
  ///
  /// The stores are found at the cost of ``stores(matching:where:)``.
  ///
  /// - Parameters:
  ///   - path: The prefix of the paths. The default matches all stores.
  ///   - filter: The conditions that the stores satisfy as well. The default is none.
  public func clearStores(
    matching path: OperationPath = [], where filter: OperationStoreFilter = []
  ) {
    if filter.isEmpty { removeSaved(at: path, isPrefix: true) }
    remove(found(matching: path, where: filter))
  }

  /// Returns a stream of the changes below a path that happen after its iterator is made. Nothing
  /// is dropped. The stream retains the client; its iterators do not.
  ///
  /// - Parameters:
  ///   - path: The prefix of the paths. The default matches all stores.
  ///   - filter: The conditions that the stores satisfy when they change. The default is none.
  public func storeChanges(
    matching path: OperationPath = [], where filter: OperationStoreFilter = []
  ) -> EventStream<OperationStoreChange> {
    EventStream(
      StreamSource { [self] handler in
        subscribe(matching: path, where: filter) { handler(.element($0)) }
      }.ending(with: closing) { [weak self] action in
        // A reader does not keep the client alive.
        let barrier = Subscriber<OperationStoreChange> { _ in action() }
        self?.update { $0.deliveries.notify(barrier, of: OperationStoreChange()) }
      },
      buffering: .all)
  }
}
