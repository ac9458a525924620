/// A request with a modifier around it; of the same kind as the request, as long as the modifier
/// leaves value and failure as they are.
public struct ModifiedOperation<Base: OperationRequest, Modifier: OperationModifier<Base>>:
  OperationRequest
{
  /// What a run gives.
  public typealias Value = Modifier.Value
  /// What a run fails with.
  public typealias Failure = Modifier.Failure

  /// The request that is modified.
  public let base: Base
  /// The modifier around it.
  public let modifier: Modifier

  /// Writes into the context what the request needs, and then what the modifier says.
  public func setup(context: inout OperationContext) {
    base.setup(context: &context)
    modifier.setup(context: &context, using: base)
  }

  /// Runs the modified request.
  public func run(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value {
    try await modifier.run(isolation: isolation, in: context, using: base, with: continuation)
  }
}

extension ModifiedOperation: StatefulOperationRequest
where
  Base: StatefulOperationRequest,
  Modifier.Value == Base.Value,
  Modifier.Failure == Base.Failure
{
  /// The state of the store.
  public typealias State = Base.State

  /// The path of the request that is modified.
  public var path: OperationPath { base.path }
  /// The type under the modifiers.
  public var requestType: any Any.Type { base.requestType }
  /// The longest retention that the request and its modifiers ask for.
  public var retention: OperationRetention? { .longest(base.retention, modifier.retention) }

  /// Writes what the state of the request needs.
  public func setupState(context: inout OperationContext) { base.setupState(context: &context) }
}

extension ModifiedOperation: QueryRequest
where
  Base: QueryRequest,
  Modifier.Value == Base.Value,
  Modifier.Failure == Base.Failure
{
  /// What a fetch gives.
  public typealias FetchValue = Base.FetchValue
  /// What a fetch fails with.
  public typealias FetchFailure = Base.FetchFailure

  /// Fetches the value as modified.
  nonisolated(nonsending) public func fetch(
    in context: OperationContext,
    with continuation: OperationContinuation<FetchValue, FetchFailure>
  ) async throws(FetchFailure) -> FetchValue {
    try await run(isolation: #isolation, in: context, with: continuation)
  }
}

extension ModifiedOperation: PaginatedRequest
where
  Base: PaginatedRequest,
  Modifier.Value == Base.Value,
  Modifier.Failure == Base.Failure
{
  /// What tells pages apart.
  public typealias PageID = Base.PageID
  /// What a page holds.
  public typealias PageValue = Base.PageValue
  /// What a fetch of a page fails with.
  public typealias PageFailure = Base.PageFailure

  /// The identifier of the first page that is fetched.
  public var initialPageId: PageID { base.initialPageId }

  /// The identifier of the page after another one.
  public func pageId(
    after page: PaginatedPage<PageID, PageValue>,
    using paging: PaginatedPaging<PageID, PageValue>, in context: OperationContext
  ) -> PageID? {
    base.pageId(after: page, using: paging, in: context)
  }

  /// The identifier of the page before another one.
  public func pageId(
    before page: PaginatedPage<PageID, PageValue>,
    using paging: PaginatedPaging<PageID, PageValue>, in context: OperationContext
  ) -> PageID? {
    base.pageId(before: page, using: paging, in: context)
  }

  /// Fetches one page of the request that is modified; the modifier is about whole runs.
  nonisolated(nonsending) public func fetchPage(
    using paging: PaginatedPaging<PageID, PageValue>, in context: OperationContext,
    with continuation: OperationContinuation<PageValue, PageFailure>
  ) async throws(PageFailure) -> PageValue {
    try await base.fetchPage(using: paging, in: context, with: continuation)
  }
}

extension ModifiedOperation: MutationRequest
where
  Base: MutationRequest,
  Modifier.Value == Base.Value,
  Modifier.Failure == Base.Failure
{
  /// What a mutation is called with.
  public typealias Arguments = Base.Arguments
  /// What a mutation gives.
  public typealias MutateValue = Base.MutateValue
  /// What a mutation fails with.
  public typealias MutateFailure = Base.MutateFailure

  /// Calls the mutation that is modified; the modifier is about whole runs.
  nonisolated(nonsending) public func mutate(
    with arguments: Arguments, in context: OperationContext,
    with continuation: OperationContinuation<MutateValue, MutateFailure>
  ) async throws(MutateFailure) -> MutateValue {
    try await base.mutate(with: arguments, in: context, with: continuation)
  }
}
