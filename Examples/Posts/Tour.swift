import SharingOperation
import Synchronization

/// Walks through the blog, and prints what happens.
@MainActor
struct Tour {
  let model: BlogModel
  let screen: Screen
  /// Returns the number of requests to a route; `nil` for a server of another program.
  let requestCount: (@Sendable (String) -> Int)?

  /// Makes the model, whose first query runs from then on, and begins to print.
  static func begin(on screen: Screen, requestCount: (@Sendable (String) -> Int)?) async throws {
    try await Tour(model: BlogModel(), screen: screen, requestCount: requestCount).run()
  }

  private func run() async throws {
    heading("The list: when the server fails, the query tries again.")
    try await listPosts()
    heading("Some posts: the author follows, and one who is known is not fetched again.")
    for post in model.posts.prefix(3) { try await read(post.id) }
    guard let post = model.post else { return }
    heading("The comments: many ask for them at once, and share one run.")
    try await askTogether(about: post)
  }

  private func heading(_ text: String) {
    screen.line()
    screen.line(text)
  }

  /// The wrapper has subscribed to its query, and the query has begun to run: there is nothing to
  /// start here.
  private func listPosts() async throws {
    let posts = try await follow(
      model.$posts.statuses, as: "posts", saved: model.posts.isEmpty ? nil : model.posts
    ) { "\($0.count) of them" }
    for post in posts.prefix(3) { screen.line("  \(post.id). \(post.title)") }
  }

  /// Opens a post; the author follows. The author of an earlier post is cached, and still fresh.
  private func read(_ id: Post.ID) async throws {
    model.open(id)
    try await follow(model.$post.statuses, as: "post \(id)", saved: model.post) {
      firstSentence(of: $0.body)
    }
    try await follow(model.$author.statuses, as: "author", saved: model.author) { $0.bio }
    screen.line("  \(model.byline ?? "")")
  }

  /// Many callers fetch the comments at the same time: all of them, and the wrapper, wait for one
  /// run.
  private func askTogether(about post: Post) async throws {
    let store = OperationClient.shared.store(for: CommentsQuery(postID: post.id).resilient)
    // Scheduled before any of them starts, so that no server is quick enough to answer in between.
    let readers = (0..<12).map { _ in store.runTask() }
    // A saved value is not a response.
    let answerCount = Mutex(0)
    let subscription = store.subscribe { event in
      if case .runEnded(.success, _) = event { answerCount.withLock { $0 += 1 } }
    }
    model.showComments()
    try await withThrowingTaskGroup { group in
      // Their failure is that of the wrapper, which is printed below. Immediate, so that the
      // wrapper is loading then, also with a saved value.
      for reader in readers { group.addImmediateTask { _ = try? await reader.runIfNeeded() } }
      try await follow(model.$comments.statuses, as: "comments", saved: model.comments) {
        "\($0.count) of them"
      }
      try await group.waitForAll()
    }
    for comment in model.comments ?? [] { screen.line("  \(comment.author): \(comment.text)") }
    subscription.cancel()
    let answers = answers(answerCount.withLock { $0 }, to: post)
    screen.line("\(readers.count) readers asked at once; \(answers)")
  }

  private func answers(_ count: Int, to post: Post) -> String {
    guard let requestCount else { return "the answer came \(times(count))" }
    return "the server was asked \(times(requestCount(CommentsQuery(postID: post.id).route)))"
  }

  private func firstSentence(of text: String) -> String {
    text.firstIndex(of: ".").map { String(text[...$0]) } ?? text
  }

  private func times(_ count: Int) -> String { count == 1 ? "once" : "\(count) times" }

  /// Prints each change of a query until there is a result. When the server fails, the saved value
  /// is the result.
  @discardableResult
  private func follow<Value>(
    _ statuses: StateStream<OperationStatus<Value, BlogError>>, as name: String,
    saved: @autoclosure () -> Value?, _ describe: (Value) -> String
  ) async throws -> Value {
    for await status in statuses {
      switch status {
      case .idle, .paused:
        continue
      case .loading:
        screen.progress("\(name): loading")
      case .result(.success(let value)):
        screen.line("\(name): \(describe(value))")
        return value
      case .result(.failure(let error)):
        guard let value = saved() else { throw error }
        screen.line("\(name): \(describe(value)), as saved: \(error.reason)")
        return value
      }
    }
    // A stream ends early only if its reader is cancelled.
    throw CancellationError()
  }
}
