import Foundation
import Synchronization

/// Serves a blog, and stores the posts that clients add to it.
///
/// A client can send an `Idempotency-Key` with a post. A post that arrives again with the same key
/// is not added again, and has the response of the first one.
public final class BlogRoutes: RouteCollection, Sendable {
  private struct Contents {
    var data: BlogData
    var deliveries: [BlogServer.Delivery] = []
  }

  private let contents: Mutex<Contents>

  /// Creates the routes for a blog.
  public init(_ data: BlogData = BlogData()) {
    contents = Mutex(Contents(data: data))
  }

  /// The posts that arrived with a key, in the order in which they first arrived.
  public var deliveries: [BlogServer.Delivery] { contents.withLock { $0.deliveries } }

  /// Registers the routes of posts, comments and authors.
  public func register(in router: inout Router) {
    router.get("/posts") { try self.posts($0) }
    router.get("/posts/:id") { try self.post($0) }
    router.get("/posts/:id/comments") { try self.comments($0) }
    router.post("/posts") { try self.createPost($0) }
    router.get("/authors") { _ in try .json(self.snapshot.authors) }
    router.get("/authors/:id") { try self.author($0) }
  }

  private var snapshot: BlogData { contents.withLock { $0.data } }

  private func posts(_ request: Request) throws -> Response {
    let posts = snapshot.posts
    let page = try Page(request).select(from: posts)
    return try .json(Array(page), headers: ["X-Total-Count": String(posts.count)])
  }

  private func post(_ request: Request) throws -> Response {
    try .json(find(request.parameter("id"), in: snapshot))
  }

  private func comments(_ request: Request) throws -> Response {
    let data = snapshot
    let post = try find(request.parameter("id"), in: data)
    return try .json(data.comments.filter { $0.postId == post.id })
  }

  private func author(_ request: Request) throws -> Response {
    let id: Int = try request.parameter("id")
    guard let author = snapshot.authors.first(where: { $0.id == id }) else {
      throw HTTPError(404, "There is no author \(id).")
    }
    return try .json(author)
  }

  private func createPost(_ request: Request) throws -> Response {
    let draft = try request.decode(BlogServer.Draft.self)
    let key = request.headers["Idempotency-Key"]
    let post = try contents.withLock { contents in
      if let known = contents.deliveries.firstIndex(where: { $0.key == key }) {
        contents.deliveries[known].count += 1
        return contents.deliveries[known].post
      }
      try Self.check(draft, against: contents.data)
      let post = BlogServer.Post(
        id: contents.data.posts.count + 1, title: draft.title, body: draft.body,
        authorId: draft.authorId)
      contents.data.posts.append(post)
      if let key { contents.deliveries.append(BlogServer.Delivery(key: key, post: post)) }
      return post
    }
    return try .json(post, status: 201, headers: ["Location": "/posts/\(post.id)"])
  }

  private static func check(_ draft: BlogServer.Draft, against data: BlogData) throws {
    guard !draft.title.isEmpty else { throw HTTPError(422, "A post needs a title.") }
    guard data.authors.contains(where: { $0.id == draft.authorId }) else {
      throw HTTPError(422, "There is no author \(draft.authorId).")
    }
  }

  private func find(_ id: Int, in data: BlogData) throws -> BlogServer.Post {
    guard let post = data.posts.first(where: { $0.id == id }) else {
      throw HTTPError(404, "There is no post \(id).")
    }
    return post
  }
}

/// The types of the blog in the server. A client defines its own types.
public enum BlogServer {
  /// An author of posts.
  public struct Author: Codable, Sendable, Equatable {
    /// The identifier of the author.
    public var id: Int
    /// The full name.
    public var name: String
    /// A description of the author in a sentence.
    public var bio: String
  }

  /// An article of the blog.
  public struct Post: Codable, Sendable, Equatable {
    /// The identifier of the post.
    public var id: Int
    /// The headline.
    public var title: String
    /// The text.
    public var body: String
    /// The identifier of the author.
    public var authorId: Int
  }

  /// A comment of a reader on a post.
  public struct Comment: Codable, Sendable, Equatable {
    /// The identifier of the comment.
    public var id: Int
    /// The identifier of its post.
    public var postId: Int
    /// The name of the reader.
    public var author: String
    /// The text.
    public var text: String
  }

  /// A post that arrived with a key, and how often it arrived.
  public struct Delivery: Sendable, Equatable {
    /// The key that the client sent.
    public let key: String
    /// The post that was added the first time.
    public let post: Post
    /// The number of requests with the key.
    public internal(set) var count = 1
  }

  /// The data that a client sends to create a post.
  struct Draft: Decodable {
    var title: String
    var body: String
    var authorId: Int
  }
}

/// A part of a long list, by the query values `page` and `size`.
struct Page {
  let number: Int
  let size: Int

  /// Reads the page of a request, which is the first one by default.
  init(_ request: Request, defaultSize: Int = 20, maximumSize: Int = 100) throws(HTTPError) {
    number = try request.query("page", default: 1)
    size = try request.query("size", default: defaultSize)
    guard number >= 1, (1...maximumSize).contains(size) else {
      throw HTTPError(400, "The page starts at 1, and the size is in 1...\(maximumSize).")
    }
  }

  func select<Item>(from items: [Item]) -> ArraySlice<Item> {
    // No list has more pages than items, and the bound keeps the product from an overflow.
    items.dropFirst(min(number - 1, items.count) * size).prefix(size)
  }
}
