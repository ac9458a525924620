import SharingOperation

/// A query that gets one route of the blog.
///
/// A request is a value that describes a fetch. Its path is its route: every request for post 7 has
/// the same store, and all stores of posts can be found together.
protocol BlogQuery: SimpleQueryRequest, Hashable
where FetchValue: Decodable & Equatable, FetchFailure == BlogError {
  var route: String { get }
}

extension BlogQuery {
  var path: OperationPath { OperationPath(route.split(separator: "/").map(String.init)) }

  func fetch(in context: OperationContext) async throws(BlogError) -> FetchValue {
    try await context.blog.get(route)
  }
}

struct PostsQuery: BlogQuery {
  typealias FetchValue = [Post]

  var route: String { "posts" }
}

struct PostQuery: BlogQuery {
  typealias FetchValue = Post

  let id: Post.ID

  var route: String { "posts/\(id)" }
}

struct CommentsQuery: BlogQuery {
  typealias FetchValue = [Comment]

  let postID: Post.ID

  var route: String { "posts/\(postID)/comments" }
}

struct AuthorQuery: BlogQuery {
  typealias FetchValue = Author

  let id: Author.ID

  var route: String { "authors/\(id)" }
}

extension BlogQuery {
  /// The query with retries, for an unreliable network.
  ///
  /// The handler is below the retry, so it is called for every attempt. There is no
  /// `deduplicated()`, because a client deduplicates every query by default.
  var resilient: some QueryRequest<FetchValue, State> {
    handleEvents { event in
      guard case .runEnded(.failure(let error), let run) = event else { return }
      let context = run.context
      guard error.isTemporary, !context.isLastRetryAttempt else { return }
      let attempt = context.operationRetryIndex + 1
      let attempts = context.operationMaxRetries + 1
      context.report("attempt \(attempt) of \(attempts): \(error.reason); trying again")
    }
    .retry(limit: 2) { $0.isTemporary }
    .backoff(.exponential(.milliseconds(150)))
    .stale(after: .seconds(60))
  }
}

/// The service of the requests. A client passes its context to every store.
extension OperationContext {
  /// The blog of the requests.
  var blog: BlogAPI {
    get { self[BlogKey.self] }
    set { self[BlogKey.self] = newValue }
  }

  /// Receives a line about the progress of a run.
  var report: @Sendable (String) -> Void {
    get { self[ReportKey.self] }
    set { self[ReportKey.self] = newValue }
  }

  private enum BlogKey: Key {
    static var defaultValue: BlogAPI {
      preconditionFailure("Set `blog` in the context of the client.")
    }
  }

  private enum ReportKey: Key {
    static var defaultValue: @Sendable (String) -> Void { { _ in } }
  }
}
