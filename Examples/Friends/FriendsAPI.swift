import Fetching
import Foundation
import FoundationNetworking

/// A user in a list of friends, with the relationship to the current user.
struct User: Codable, Identifiable, Equatable {
  enum Relationship: String, Codable, CustomStringConvertible {
    case notFriends
    case friendRequestSent

    var description: String {
      switch self {
      case .notFriends: "no friend yet"
      case .friendRequestSent: "request sent"
      }
    }
  }

  let id: Int
  let name: String
  var relationship: Relationship
}

/// A refusal of the server.
struct FriendsError: Error, Equatable, CustomStringConvertible {
  let status: Int
  let message: String

  var description: String { message }
}

/// Reads lists of friends, and sends friend requests.
struct FriendsAPI: Sendable {
  /// The number of users on one page.
  static let pageSize = 5

  let url: URL

  /// Returns one page of a user's friends. Pages count from 1.
  func friends(of userID: User.ID, page: Int) async throws -> [User] {
    let items = [
      URLQueryItem(name: "page", value: String(page)),
      URLQueryItem(name: "size", value: String(Self.pageSize)),
    ]
    let url = url.appending(path: "users/\(userID)/friends").appending(queryItems: items)
    return try await send(URLRequest(url: url))
  }

  /// Sends a friend request to a user.
  func sendFriendRequest(to userID: User.ID) async throws -> User {
    var request = URLRequest(url: url.appending(path: "users/\(userID)/friend-requests"))
    request.httpMethod = "POST"
    return try await send(request)
  }

  private func send<Answer: Decodable>(_ request: URLRequest) async throws -> Answer {
    let (data, response) = try await URLSession.shared.answer(to: request)
    let status = (response as? HTTPURLResponse)?.statusCode ?? 0
    guard (200..<300).contains(status) else {
      let refusal = try? JSONDecoder().decode(Refusal.self, from: data)
      throw FriendsError(status: status, message: refusal?.message ?? "status \(status)")
    }
    return try JSONDecoder().decode(Answer.self, from: data)
  }

  private struct Refusal: Decodable {
    let message: String
  }
}
