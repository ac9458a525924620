import Synchronization

/// Serves lists of friends, and accepts friend requests, except for those to a few users.
public final class FriendRoutes: RouteCollection, Sendable {
  private let users: Mutex<[FriendServer.User]>

  /// Creates the routes of twenty-two users. The caller has sent no request to them yet.
  public init() {
    users = Mutex(
      Self.names.enumerated().map { index, name in
        FriendServer.User(id: index + 1, name: name, relationship: .notFriends)
      })
  }

  /// Registers the routes of friends and of friend requests.
  public func register(in router: inout Router) {
    router.get("/users/:id/friends") { try self.friends($0) }
    router.post("/users/:id/friend-requests") { try self.sendRequest($0) }
  }

  private func friends(_ request: Request) throws -> Response {
    let id: Int = try request.parameter("id")
    let users = users.withLock { $0 }
    guard users.contains(where: { $0.id == id }) else { throw Self.noUser(id) }
    let friends = users.filter { $0.id != id && Self.areFriends($0.id, id) }
    return try .json(Array(try Page(request, defaultSize: 5).select(from: friends)))
  }

  private func sendRequest(_ request: Request) throws -> Response {
    let id: Int = try request.parameter("id")
    let user = try users.withLock { users in
      guard let index = users.firstIndex(where: { $0.id == id }) else { throw Self.noUser(id) }
      guard !Self.refusing.contains(id) else {
        throw HTTPError(403, "\(users[index].name) takes no friend requests.")
      }
      users[index].relationship = .friendRequestSent
      return users[index]
    }
    return try .json(user, status: 201)
  }

  private static func noUser(_ id: Int) -> HTTPError { HTTPError(404, "There is no user \(id).") }

  /// Returns whether two users are friends, as most of them are.
  private static func areFriends(_ first: Int, _ second: Int) -> Bool {
    (first + second) % 3 != 0
  }

  /// The users that refuse friend requests.
  private static let refusing: Set<Int> = [7, 10]

  private static let names = [
    "Ada", "Bea", "Carlo", "Dunja", "Edgar", "Fatma", "Goran", "Hedda", "Ivan", "Jette", "Kofi",
    "Lotte", "Marek", "Nuria", "Oskar", "Paula", "Quinn", "Rosa", "Samir", "Tilda", "Ugo", "Vera",
  ]
}

/// The types of the friends in the server. A client defines its own types.
public enum FriendServer {
  /// A user, with the relationship to the caller.
  public struct User: Codable, Sendable, Equatable {
    /// The identifier of the user.
    public var id: Int
    /// The first name.
    public var name: String
    /// The relationship of the user to the caller.
    public var relationship: Relationship
  }

  /// The relationship between two users.
  public enum Relationship: String, Codable, Sendable {
    /// The users are not friends.
    case notFriends
    /// A friend request was sent, and has no response yet.
    case friendRequestSent
  }
}
