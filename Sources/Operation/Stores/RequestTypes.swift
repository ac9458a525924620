import Synchronization

/// The type of the request that a store was made for, with and without its modifiers.
struct RequestTypes: ~Copyable, Sendable {
  let plain: any Any.Type
  let modified: any Any.Type
  /// The name of the plain type, which is made once because that is slow.
  private let text = Mutex<String?>(nil)

  /// The name of a run's Swift task: that of the type, and for a paginated request what the run fetches,
  /// such as `FeedRequest, next page`.
  func taskName(in context: OperationContext) -> String {
    let name = text.withLock { text in
      if let text { return text }
      let new = "\(plain)"
      text = new
      return new
    }
    switch (context.input as? PageRunInput)?.kind {
    case nil, .refetch: return name
    case .initialPage: return name + ", initial page"
    case .nextPage: return name + ", next page"
    case .previousPage: return name + ", previous page"
    case .allPages: return name + ", all pages"
    }
  }
}
