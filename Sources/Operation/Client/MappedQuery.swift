import ReactiveStreams

/// A query whose value is made from that of another one, which it reads through the other's store.
///
/// See `map(_:)`, which makes it.
public struct MappedQuery<Base: QueryRequest, Value: Sendable, Failure: Error>: QueryRequest
where Base.State == QueryState<Base.FetchValue, Base.FetchFailure> {
  let base: Base
  let place: String
  let transform: @Sendable (Base.Value) -> Result<Value, Failure>
  let failure: @Sendable (Base.Failure) -> Failure

  /// The path of the other query, and the place in the source where `map` was called.
  public var path: OperationPath { base.path.appending(place) }

  /// A type that differs from that of the other query, and is the same whatever its modifiers.
  public var requestType: any Any.Type { base.transformedRequestType }
  /// The retention of the other query.
  public var retention: OperationRetention? { base.retention }

  /// Lets the store follow the value of the other query. The store of that one does the retries.
  public func setup(context: inout OperationContext) {
    // Only the number: a retry of this query waits as the client's defaults say.
    context.settings.values.retry.limit = 0
    // The runs of the other query wait for a connection.
    context.settings.values.networkMode = .always
    // Observers of maps of queries with other modifiers share no run.
    context.settings.values.modifiers +=
      base.settingUp(OperationContext()).settings.values.modifiers
    context.settings.values.staleness = .when { [base, path] state, context in
      (state as? State).map { $0.isOutdated(at: path, by: base, in: context) }
    }
    context.settings.values.automatic.triggers.append { [self] context, request in
      guard let client = context.operationClient else { return .empty }
      let (store, rules) = client.storeAndRules(for: base)
      return store.confirmedChanges(by: rules).subscribe { signal in
        // A reset starts no run.
        guard case .element = signal, store.confirmedValue != nil else { return }
        // A run in flight may wait until the other query's run ends, which one that reads a socket does not.
        if store.state.isLoading { yieldPresent(of: store) { request.store?.yield($0) } }
        // A run in flight may have read the value before this one, so another run has to follow it.
        request.store?.invalidateAlone()
      }
    }
  }

  /// Reads the value of the other query, which is fetched if needed, and transforms it.
  ///
  /// - Throws: The failure of the other query, or of the transformation.
  nonisolated(nonsending) public func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value {
    try transform(await baseValue(in: context, continuation)).get()
  }

  nonisolated(nonsending) private func baseValue(
    in context: OperationContext, _ continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Base.Value {
    do throws(Base.Failure) {
      guard let client = context.operationClient, let node = context.runNode else {
        return try await base.run(
          in: context,
          with: OperationContinuation { [transform, failure] result in
            continuation.yield(with: result.mapError(failure).flatMap(transform))
          })
      }
      _ = client.hub.note(node, context.launch, reads: base.path)
      let (store, rules) = client.storeAndRules(for: base)
      store.noteRead()
      let value = try await value(of: store, by: rules, in: context, continuation)
      // It notes that this run reads a value that is invalidated.
      _ = context.valueForRun(of: store)
      let (newest, version, isInvalidated) = store.versionForRun
      _ = client.hub.note(node, context.launch, reads: base.path, at: version)
      // The newest value can be that of an older run, which has ended after the one that this run has awaited.
      return isInvalidated ? value : newest ?? value
    } catch {
      throw failure(error)
    }
  }

  /// Fetches the other query if the run is for that, and otherwise if there is no usable value.
  nonisolated(nonsending) private func value(
    of store: OperationStore<Base.State>, by rules: RequestRules<Base.State>?,
    in context: OperationContext, _ continuation: OperationContinuation<Value, Failure>
  ) async throws(Base.Failure) -> Base.Value {
    let cause = context.operationRun?.cause
    // A map without a store that a restarted run calls was not restarted itself.
    let isRestarted = context.launch > 0 && context.runNode?.origin != nil
    // Runs of other causes need not fetch it: the observers of this query observe the other one, too.
    let isForced = cause == .poll || cause == .rerun || cause == .fetch && context.cacheUse == .none
    if isRestarted || isForced {
      return try await store.run(.empty, by: rules, isRestarting: isRestarted)
    }
    // A run that follows a new value must not fetch the next one, even if each value is stale at once, or if
    // the other query has failed after it: it ran before this run, if it had to.
    let isFollowing =
      cause == .invalidation || cause == .dependency || context.cacheUse == .ofAnyAge
    if isFollowing, let error = store.state.error {
      if let value = store.confirmedValue { continuation.yield(with: transform(value)) }
      throw error
    }
    // The other query displays it, too, until its run in flight has ended.
    if store.state.isLoading, !store.isUsable(by: rules) {
      yieldPresent(of: store, to: continuation.yield(with:))
    }
    return try await store.ensure(
      by: rules, isForRun: true, ignoringAge: isFollowing, present: { $0 }, fetched: { $0 })
  }
}

extension MappedQuery {
  /// Yields what the other query displays: its value, and the failure that came after it.
  private func yieldPresent(
    of store: OperationStore<Base.State>, to yield: (Result<Value, Failure>) -> Void
  ) {
    guard let value = store.confirmedValue else { return }
    yield(transform(value))
    if let error = store.error { yield(.failure(failure(error))) }
  }
}

extension QueryState {
  /// Whether the value was made from a value of another query that is not usable any more, or not the newest.
  fileprivate func isOutdated<Base: QueryRequest>(
    at path: OperationPath, by base: Base, in context: OperationContext
  ) -> Bool where Base.State == QueryState<Base.FetchValue, Base.FetchFailure> {
    // A look-up, which is no use of the other store, and creates none.
    guard let client = context.operationClient, let date = valueLastUpdatedAt,
      let store = client.store(of: base)?.base as? OperationStore<Base.State>,
      store.isUsable(by: store.rules(of: base))
    else { return true }
    // The date says nothing of a value that came while the run was in flight, or at the same time.
    let version = client.hub.version(of: base.path, readBy: path)
    if let version { return version != store.versionForRun.version }
    return store.state.valueLastUpdatedAt.map { $0 > date } ?? false
  }
}

extension QueryRequest where State == QueryState<FetchValue, FetchFailure> {
  /// Returns a query whose value is made from that of this one.
  ///
  /// ```swift
  /// let titles = PostsQuery().map { posts in posts.map(\.title) }
  /// ```
  ///
  /// Both have stores of their own, and one fetch serves both: the mapped query reads this one through its
  /// store, with this one's modifiers. While it is observed, it follows each new value, and has the failure
  /// that came after it. A `fetch()` of it fetches this one; an invalidation of it alone does not, if this one
  /// has failed. Its path is that of this query, and one more element for the place in the source
  /// where this is called: so the closure must not capture what differs between calls, unless that is in
  /// the path of this query. An invalidation of this query, and of all paths that begin with its path,
  /// invalidates both. Modifiers that are applied to the mapped query concern its own store, as does a context
  /// that is passed to a fetch of it.
  ///
  /// - Parameters:
  ///   - fileID: The file of the call.
  ///   - line: The line of the call.
  ///   - column: The column of the call.
  ///   - transform: Transforms a value. A store calls it on no actor, and a run without a store on the
  ///     caller's. No lock is held.
  public func map<NewValue: Sendable>(
    fileID: String = #fileID, line: Int = #line, column: Int = #column,
    _ transform: @escaping @Sendable (FetchValue) -> NewValue
  ) -> MappedQuery<Self, NewValue, FetchFailure> {
    MappedQuery(
      base: self, place: "map at \(fileID):\(line):\(column)",
      transform: { .success(transform($0)) }, failure: { $0 })
  }

  /// Returns a query whose value is made from that of this one by a closure that can throw; otherwise as
  /// `map(_:)` does.
  ///
  /// - Parameters:
  ///   - fileID: The file of the call.
  ///   - line: The line of the call.
  ///   - column: The column of the call.
  ///   - transform: Transforms a value. The error that it throws is the failure of a run.
  @_disfavoredOverload
  public func map<NewValue: Sendable>(
    fileID: String = #fileID, line: Int = #line, column: Int = #column,
    _ transform: @escaping @Sendable (FetchValue) throws -> NewValue
  ) -> MappedQuery<Self, NewValue, any Error> {
    MappedQuery(
      base: self, place: "map at \(fileID):\(line):\(column)",
      transform: { value in Result { try transform(value) } }, failure: { $0 })
  }
}
