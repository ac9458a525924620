/// The beginning or the end of the fetch of one page, for ``PaginatedRequest/handlePages(_:)``.
public enum PaginatedPageEvent<PageID: Hashable & Sendable, PageValue: Sendable>: Sendable {
  /// A run begins to fetch a page.
  case began(PageID, OperationRun)
  /// A run has fetched a page, or has failed to.
  case ended(PageID, Result<PageValue, any Error>, OperationRun)
}

extension PaginatedPageEvent {
  /// The run that fetches the page.
  public var run: OperationRun {
    switch self {
    case .began(_, let run), .ended(_, _, let run): run
    }
  }
}

extension PaginatedPageEvent: CustomStringConvertible, CustomDebugStringConvertible {
  /// The event with its page, result and run.
  public var description: String {
    switch self {
    case .began(let id, let run): describe(as: "began", describe(id), run.description)
    case .ended(let id, let result, let run):
      describe(as: "ended", describe(id), describe(result), run.description)
    }
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

/// A closure of `handlePages`, as one value among the settings of a request.
struct PageHandler<PageID: Hashable & Sendable, PageValue: Sendable>: Sendable {
  let handle: @Sendable (PaginatedPageEvent<PageID, PageValue>) -> Void
}
