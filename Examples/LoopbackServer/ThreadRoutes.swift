import Foundation

/// Serves comments with replies, subtree by subtree.
public final class ThreadRoutes: RouteCollection, Sendable {
  private let comments: [Int: Line]
  private let replies: [Int: [Int]]

  /// Creates the routes of two threads, which begin with the comments 1 and 20.
  public init() {
    comments = Dictionary(uniqueKeysWithValues: Self.lines.map { ($0.id, $0) })
    replies = Dictionary(grouping: Self.lines.filter { $0.parent != nil }) { $0.parent ?? 0 }
      .mapValues { $0.map(\.id) }
  }

  /// Registers the route of a comment with its replies.
  public func register(in router: inout Router) {
    router.get("/comments/:id") { try self.comment($0) }
  }

  private func comment(_ request: Request) throws -> Response {
    let id: Int = try request.parameter("id")
    let depth = try request.query("depth", default: 1)
    guard (0...10).contains(depth) else { throw HTTPError(400, "The depth is in 0...10.") }
    guard let line = comments[id] else { throw HTTPError(404, "There is no comment \(id).") }
    return try .json(subtree(of: line, depth: depth))
  }

  private func subtree(of line: Line, depth: Int) -> ThreadServer.Comment {
    let ids = replies[line.id] ?? []
    let below = depth == 0 ? [] : ids.compactMap { comments[$0] }
    return ThreadServer.Comment(
      id: line.id, author: line.author, text: line.text, replyCount: ids.count,
      replies: below.map { subtree(of: $0, depth: depth - 1) })
  }

  private struct Line {
    let id: Int
    let parent: Int?
    let author: String
    let text: String

    init(_ id: Int, below parent: Int? = nil, _ author: String, _ text: String) {
      self.id = id
      self.parent = parent
      self.author = author
      self.text = text
    }
  }

  private static let lines = [
    Line(1, "Mira", "Which tool do you still use after ten years?"),
    Line(2, below: 1, "Bram", "A pencil. It never needs an update."),
    Line(3, below: 1, "Farah", "My grandmother's cast-iron pan."),
    Line(4, below: 1, "Emil", "A notebook of the things that I broke."),
    Line(5, below: 2, "Ana", "Which hardness?"),
    Line(6, below: 2, "Gus", "Mine gets lost every week."),
    Line(7, below: 3, "Hana", "How do you clean it?"),
    Line(8, below: 5, "Bram", "2B, and a good sharpener."),
    Line(9, below: 7, "Farah", "Salt and a cloth, and nothing else."),
    Line(10, below: 7, "Dora", "Ours went through the dishwasher once."),
    Line(20, "Priya", "Does anyone else keep bees on a roof?"),
    Line(21, below: 20, "Lena", "Four hives, and a view of the station."),
    Line(22, below: 21, "Priya", "Do the trains disturb them?"),
    Line(23, below: 22, "Lena", "Less than they disturb me."),
  ]
}

/// The types of the threads in the server. A client defines its own types.
public enum ThreadServer {
  /// A comment with some of the replies below it.
  public struct Comment: Codable, Sendable, Equatable {
    /// The identifier of the comment.
    public var id: Int
    /// The name of the author.
    public var author: String
    /// The text.
    public var text: String
    /// The number of direct replies, with the omitted ones.
    public var replyCount: Int
    /// The direct replies, down to the requested depth.
    public var replies: [Comment]
  }
}
