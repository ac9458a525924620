import Synchronization

/// The names of Swift tasks of runs that have none of their own.
enum TaskNames {
  private static let names = Mutex<[ObjectIdentifier: String]>([:])

  /// The name of the type of the request, and for a paginated request what the run fetches:
  /// `FeedRequest, next page`.
  static func name(of request: any Any.Type, in context: OperationContext) -> String {
    let name = names.withLock { names in
      if let name = names[ObjectIdentifier(request)] { return name }
      let name = "\(request)"
      names[ObjectIdentifier(request)] = name
      return name
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
