/// A query that returns one value and yields none before: the short form of ``QueryRequest``.
///
/// ```swift
/// struct PlayerQuery: SimpleQueryRequest, Hashable {
///   let id: Int
///   func fetch(in context: OperationContext) async throws -> Player { try await api.player(id) }
/// }
/// ```
public protocol SimpleQueryRequest<FetchValue, State>: QueryRequest {
  // Declared again because the compiler infers them from requirements of the same protocol.
  /// The type of the fetched value.
  associatedtype FetchValue
  /// The type of the error that a fetch throws.
  associatedtype FetchFailure
  /// The state of the store.
  associatedtype State = QueryState<FetchValue, FetchFailure>

  /// Fetches the value.
  ///
  /// A store calls this on no actor, and a run without a store on the caller's. No lock is held.
  ///
  /// - Parameter context: The context of the run.
  /// - Throws: The failure of the run.
  nonisolated(nonsending) func fetch(
    in context: OperationContext
  ) async throws(FetchFailure) -> FetchValue
}

extension SimpleQueryRequest {
  /// Fetches the value. Nothing is yielded before.
  nonisolated(nonsending) public func fetch(
    in context: OperationContext,
    with continuation: OperationContinuation<FetchValue, FetchFailure>
  ) async throws(FetchFailure) -> FetchValue { try await fetch(in: context) }
}

/// A paginated request whose pages are fetched whole: the short form of ``PaginatedRequest``.
///
/// ```swift
/// struct FeedRequest: SimplePaginatedRequest, Hashable {
///   let initialPageId = 0
///
///   func pageId(
///     after page: PaginatedPage<Int, [Post]>, using paging: PaginatedPaging<Int, [Post]>,
///     in context: OperationContext
///   ) -> Int? { page.value.isEmpty ? nil : page.id + 1 }
///
///   func fetchPage(
///     using paging: PaginatedPaging<Int, [Post]>, in context: OperationContext
///   ) async throws -> [Post] { try await api.posts(page: paging.pageId) }
/// }
/// ```
public protocol SimplePaginatedRequest<PageID, PageValue>: PaginatedRequest {
  /// The type of the identifier of a page.
  associatedtype PageID
  /// The type of the value of a page.
  associatedtype PageValue
  /// The type of the error that a fetch of a page throws.
  associatedtype PageFailure
  /// The type of the value that a run returns.
  associatedtype Value = PaginatedResult<PageID, PageValue>
  /// The type of the error that a run throws.
  associatedtype Failure = PageFailure
  /// The state of the store.
  associatedtype State = PaginatedState<PageID, PageValue, PageFailure>

  /// Fetches one page.
  ///
  /// A store calls this on no actor, and a run without a store on the caller's. No lock is held.
  ///
  /// - Parameters:
  ///   - paging: The identifier of the page, and the pages of the state.
  ///   - context: The context of the run.
  /// - Throws: The failure of the page, which is that of the run.
  nonisolated(nonsending) func fetchPage(
    using paging: PaginatedPaging<PageID, PageValue>, in context: OperationContext
  ) async throws(PageFailure) -> PageValue
}

extension SimplePaginatedRequest {
  /// Fetches one page. Nothing is yielded before.
  nonisolated(nonsending) public func fetchPage(
    using paging: PaginatedPaging<PageID, PageValue>, in context: OperationContext,
    with continuation: OperationContinuation<PageValue, PageFailure>
  ) async throws(PageFailure) -> PageValue { try await fetchPage(using: paging, in: context) }
}

/// A mutation that returns one value and yields none before: the short form of ``MutationRequest``.
///
/// ```swift
/// struct DeletePost: SimpleMutationRequest, Hashable {
///   func mutate(with id: Int, in context: OperationContext) async throws { try await api.delete(id) }
/// }
/// ```
public protocol SimpleMutationRequest<Arguments, MutateValue>: MutationRequest {
  /// The type of the arguments of a call.
  associatedtype Arguments
  /// The type of the value that a call returns.
  associatedtype MutateValue
  /// The type of the error that a call throws.
  associatedtype MutateFailure
  /// The type of the value that a run returns.
  associatedtype Value = MutateValue
  /// The type of the error that a run throws.
  associatedtype Failure = MutateFailure
  /// The state of the store.
  associatedtype State = MutationState<Arguments, MutateValue, MutateFailure>

  /// Makes the change.
  ///
  /// A store calls this on no actor, and a run without a store on the caller's. No lock is held.
  ///
  /// - Parameters:
  ///   - arguments: The arguments of the call.
  ///   - context: The context of the run.
  /// - Throws: The failure of the call.
  nonisolated(nonsending) func mutate(
    with arguments: Arguments, in context: OperationContext
  ) async throws(MutateFailure) -> MutateValue
}

extension SimpleMutationRequest {
  /// Makes the change. Nothing is yielded before.
  nonisolated(nonsending) public func mutate(
    with arguments: Arguments, in context: OperationContext,
    with continuation: OperationContinuation<MutateValue, MutateFailure>
  ) async throws(MutateFailure) -> MutateValue { try await mutate(with: arguments, in: context) }
}
