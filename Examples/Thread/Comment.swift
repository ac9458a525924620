import Fetching
import Foundation
import FoundationNetworking

/// A comment, with those of its replies that have been fetched.
struct Comment: TreeValue, Decodable, Equatable {
  let nodeId: Int
  let author: String
  let text: String
  /// The number of direct replies, fetched or not.
  let replyCount: Int
  var children: [Comment]

  /// The comments below this one whose replies have not been fetched.
  var unopened: [Comment] {
    if replyCount > children.count { return [self] }
    return children.flatMap(\.unopened)
  }

  private enum CodingKeys: String, CodingKey {
    case nodeId = "id"
    case author, text, replyCount
    case children = "replies"
  }
}

/// An error of a request to a server.
struct ThreadError: Error, Equatable, CustomStringConvertible {
  let status: Int

  var description: String { "the server answered with status \(status)" }
}

/// Reads comments from a server.
struct CommentAPI: Sendable {
  let url: URL

  /// The comment with an identifier, and its direct replies.
  func comment(_ id: Int) async throws -> Comment {
    let request = URLRequest(url: url.appending(path: "comments/\(id)"))
    let (data, response) = try await URLSession.shared.answer(to: request)
    let status = (response as? HTTPURLResponse)?.statusCode ?? 0
    guard status == 200 else { throw ThreadError(status: status) }
    return try JSONDecoder().decode(Comment.self, from: data)
  }
}
