import Foundation
import Glibc
import LoopbackServer
import SharingOperation

/// A blog with many readers, for the inspector: `swift run inspect --demo` shows it.
struct BusyBlog: Sendable {
  private let client: OperationClient

  /// Starts a server and its readers, and serves an inspector, until standard input ends.
  @MainActor
  static func run(on screen: Screen) async throws {
    let server = LoopbackServer(router: Router(BlogRoutes(BlogData(seed: 5))), behaviour: behaviour)
    try server.start()
    defer { server.stop() }
    var context = OperationContext()
    context.blog = BlogAPI(url: server.baseURL)
    // Manual, so that the inspector can disconnect it.
    let network = ManualNetworkObserver()
    let defaults = OperationDefaults(networkMode: .online, networkObserver: network)
    let client = OperationClient(defaults: defaults, context: context)
    let inspector = try client.serveInspector()
    defer { inspector.cancel() }
    screen.line("The blog is busy until the end of input. See it with: swift run inspect posts")
    let work = Task { await BusyBlog(client: client).work() }
    await endOfInput()
    work.cancel()
  }

  /// Slow responses, temporary failures, and some permanent ones.
  private static var behaviour: ServerBehaviour {
    ServerBehaviour(
      latency: .milliseconds(180),
      delays: [.init("/posts/:id/comments", .milliseconds(700))],
      faults: [
        .init("/posts/:id", .every(3)), .init("/authors/:id", .every(4), status: 500),
        .init("/authors/4", .always, status: 500),
      ])
  }

  private static func endOfInput() async {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        var buffer = [UInt8](repeating: 0, count: 256)
        while case let count = read(STDIN_FILENO, &buffer, buffer.count), count != 0 {
          if count < 0, errno != EINTR { break }
        }
        continuation.resume()
      }
    }
  }

  private func work() async {
    await withTaskGroup { group in
      for number in 0..<6 { group.addTask { await readPosts(from: number) } }
      group.addTask { await readFrontPage() }
      group.addTask { await writePosts() }
      group.addTask { await invalidate() }
    }
  }

  /// Reads one post after the other, for a few seconds each.
  private func readPosts(from number: Int) async {
    var id = number * 3
    while !Task.isCancelled {
      id = id % 12 + 1
      let query = PostQuery(id: id).busy
      let post = client.store(for: query).subscribe { _ in }
      let comments = client.store(for: CommentsQuery(postID: id).busy).subscribe { _ in }
      // Both join the run of the subscription.
      async let first = client.fetch(query)
      async let second = client.fetch(query)
      _ = try? await (first, second)
      _ = try? await client.ensure(AuthorQuery(id: id % 5 + 1).busy)
      await pause(seconds: 1 + number / 2)
      post.cancel()
      comments.cancel()
    }
  }

  private func readFrontPage() async {
    let page = client.store(for: FrontPageQuery().busy).subscribe { _ in }
    while !Task.isCancelled {
      _ = try? await client.fetch(FrontPageQuery().busy)
      await pause(seconds: 9)
    }
    page.cancel()
  }

  private func writePosts() async {
    let store = client.store(for: CreatePost().patient)
    var count = 0
    while !Task.isCancelled {
      count += 1
      let draft = Draft(
        title: "Note \(count)", body: "Written on a train.", authorId: count % 5 + 1)
      _ = try? await store.mutate(with: draft)
      client.invalidate(PostsQuery().busy)
      await pause(seconds: 7)
    }
  }

  private func invalidate() async {
    var id = 1
    while !Task.isCancelled {
      await pause(seconds: 3)
      id = id % 12 + 1
      client.invalidate(PostQuery(id: id).busy)
    }
  }

  private func pause(seconds: Int) async {
    try? await Task.sleep(for: .seconds(seconds))
  }
}

/// The front page: the list of posts, and the first of them with their authors.
struct FrontPageQuery: QueryRequest, Hashable {
  var path: OperationPath { ["pages", "front"] }

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<[String], any Error>
  ) async throws -> [String] {
    let posts = try await context.ensure(PostsQuery().busy)
    var lines: [String] = []
    for post in posts.prefix(3) {
      let author = try await context.ensure(AuthorQuery(id: post.authorId).busy)
      lines.append("\(post.title), by \(author.name)")
    }
    return lines
  }
}

extension QueryRequest {
  fileprivate var busy: some QueryRequest<Value, State> { stale(after: .seconds(8)) }
}

extension BlogQuery {
  fileprivate var busy: some QueryRequest<FetchValue, State> {
    resilient.stale(after: .seconds(8))
  }
}
