import Synchronization

/// The name of the Swift tasks of a request: that of its type, which is made once because that is slow.
struct TaskName: ~Copyable, Sendable {
  let request: any Any.Type
  private let text = Mutex<String?>(nil)

  init(of request: any Any.Type) { self.request = request }

  /// The name of the type, and for a paginated request what the run fetches: `FeedRequest, next page`.
  func name(in context: OperationContext) -> String {
    let name = text.withLock { text in
      if let text { return text }
      let new = "\(request)"
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
