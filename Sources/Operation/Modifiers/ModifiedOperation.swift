/// A request with a modifier.
///
/// It is of the same kind as the request if the modifier does not change the types of the value and
/// the failure. Otherwise it is a request without a state.
public struct ModifiedOperation<Base: OperationRequest, Modifier: OperationModifier<Base>>:
  OperationRequest
{
  /// The request that is modified.
  public let base: Base
  /// The modifier that is applied to the request.
  public let modifier: Modifier

  /// Performs the setup of the request, and then that of the modifier.
  public func setup(context: inout OperationContext) {
    base.setup(context: &context)
    modifier.setup(context: &context, using: base)
    context.settings.values.modifiers.append(modifier)
  }

  /// Runs the modified request.
  ///
  /// - Throws: The failure of the modified request.
  public func run(
    isolation: isolated (any Actor)?, in context: OperationContext,
    with continuation: OperationContinuation<Modifier.Value, Modifier.Failure>
  ) async throws(Modifier.Failure) -> Modifier.Value {
    try await modifier.run(isolation: isolation, in: context, using: base, with: continuation)
  }
}

extension OperationRequest {
  /// The type of the request without its modifiers, for what is printed. The name of a type with modifiers
  /// contains that of the request twice for each of them.
  var plainType: any Any.Type {
    (self as? any StatefulOperationRequest)?.requestType ?? Self.self
  }
}

extension ModifiedOperation: StatefulOperationRequest
where
  Base: StatefulOperationRequest,
  Modifier.Value == Base.Value,
  Modifier.Failure == Base.Failure
{
  // With a typealias, the compiler would not infer the type of a property whose wrapper is initialised with an
  // opaque request behind a modifier.
  /// The type of the request's state, from which `State` is inferred.
  public static var stateType: Base.State.Type { Base.State.self }

  /// The path of the request.
  public var path: OperationPath { base.path }
  /// The request type of the request.
  public var requestType: any Any.Type { base.requestType }
  /// The longer one of the retentions of the request and of the modifier.
  public var retention: OperationRetention? { .longest(base.retention, modifier.retention) }

  /// Performs the setup of the request's state.
  public func setupState(context: inout OperationContext) { base.setupState(context: &context) }
}

extension ModifiedOperation: QueryRequest
where Base: QueryRequest, Modifier.Value == Base.Value, Modifier.Failure == Base.Failure {
  /// Fetches the value with the modifier.
  ///
  /// - Throws: The failure of the modified request.
  nonisolated(nonsending) public func fetch(
    in context: OperationContext,
    with continuation: OperationContinuation<Base.FetchValue, Base.FetchFailure>
  ) async throws(Base.FetchFailure) -> Base.FetchValue {
    try await run(isolation: #isolation, in: context, with: continuation)
  }
}

extension ModifiedOperation: PaginatedRequest
where Base: PaginatedRequest, Modifier.Value == Base.Value, Modifier.Failure == Base.Failure {
  /// The identifier of the page that is fetched while the state has no page.
  public var initialPageId: Base.PageID { base.initialPageId }

  /// Returns the identifier of the page after another one.
  public func pageId(
    after page: PaginatedPage<Base.PageID, Base.PageValue>,
    using paging: PaginatedPaging<Base.PageID, Base.PageValue>, in context: OperationContext
  ) -> Base.PageID? { base.pageId(after: page, using: paging, in: context) }

  /// Returns the identifier of the page before another one.
  public func pageId(
    before page: PaginatedPage<Base.PageID, Base.PageValue>,
    using paging: PaginatedPaging<Base.PageID, Base.PageValue>, in context: OperationContext
  ) -> Base.PageID? { base.pageId(before: page, using: paging, in: context) }

  /// Fetches one page without the modifier, which applies to whole runs.
  ///
  /// - Throws: The failure of the modified request.
  nonisolated(nonsending) public func fetchPage(
    using paging: PaginatedPaging<Base.PageID, Base.PageValue>, in context: OperationContext,
    with continuation: OperationContinuation<Base.PageValue, Base.PageFailure>
  ) async throws(Base.PageFailure) -> Base.PageValue {
    try await base.fetchPage(using: paging, in: context, with: continuation)
  }
}

extension ModifiedOperation: MutationRequest
where Base: MutationRequest, Modifier.Value == Base.Value, Modifier.Failure == Base.Failure {
  /// Calls the mutation without the modifier, which applies to whole runs.
  ///
  /// - Throws: The failure of the modified request.
  nonisolated(nonsending) public func mutate(
    with arguments: Base.Arguments, in context: OperationContext,
    with continuation: OperationContinuation<Base.MutateValue, Base.MutateFailure>
  ) async throws(Base.MutateFailure) -> Base.MutateValue {
    try await base.mutate(with: arguments, in: context, with: continuation)
  }
}
