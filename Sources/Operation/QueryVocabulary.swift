// The query names of the library: type aliases and forwards for the operation names.

/// Another name for ``OperationContext``.
public typealias QueryContext = OperationContext
/// Another name for ``OperationClient``.
public typealias QueryClient = OperationClient
/// Another name for ``OperationPath``.
public typealias QueryPath = OperationPath
/// Another name for ``OperationStore``.
public typealias QueryStore<State: OperationState> = OperationStore<State>
/// Another name for ``OpaqueOperationStore``.
public typealias OpaqueQueryStore = OpaqueOperationStore
/// Another name for ``OperationState``.
public typealias QueryStateProtocol = OperationState
/// Another name for an ``OperationContinuation`` whose failure is any error.
public typealias QueryContinuation<Value: Sendable> = OperationContinuation<Value, any Error>
/// Another name for an ``OperationTask`` whose failure is any error.
public typealias QueryTask<Value: Sendable> = OperationTask<Value, any Error>
/// Another name for ``OperationTaskConfiguration``.
public typealias QueryTaskConfiguration = OperationTaskConfiguration
/// Another name for ``PaginatedRequest``.
public typealias InfiniteQueryRequest = PaginatedRequest
/// Another name for ``PaginatedState`` whose failure is any error.
public typealias InfiniteQueryState<PageID: Hashable & Sendable, PageValue: Sendable> =
  PaginatedState<PageID, PageValue, any Error>
/// Another name for ``PaginatedPage``.
public typealias InfiniteQueryPage<PageID: Hashable & Sendable, PageValue: Sendable> =
  PaginatedPage<PageID, PageValue>
/// Another name for ``PaginatedPages``.
public typealias InfiniteQueryPages<PageID: Hashable & Sendable, PageValue: Sendable> =
  PaginatedPages<PageID, PageValue>
/// Another name for ``PaginatedPaging``.
public typealias InfiniteQueryPaging<PageID: Hashable & Sendable, PageValue: Sendable> =
  PaginatedPaging<PageID, PageValue>

extension OperationState {
  /// Another name for ``OperationValue``.
  public typealias QueryValue = OperationValue
  /// Another name for ``OperationValue``.
  public typealias Value = OperationValue
}

extension StatefulOperationRequest {
  /// Another name for ``rerunOnChange(of:evenIfFresh:)``.
  public func refetchOnChange(
    of condition: some OperationRunSpecification, evenIfFresh: Bool = false
  ) -> Configured { rerunOnChange(of: condition, evenIfFresh: evenIfFresh) }
}

extension OperationContext {
  /// Another name for ``operationClient``.
  public var queryClient: OperationClient? {
    get { operationClient }
    set { operationClient = newValue }
  }

  /// Another name for ``operationClock``.
  public var queryClock: any OperationClock {
    get { operationClock }
    set { operationClock = newValue }
  }
}
