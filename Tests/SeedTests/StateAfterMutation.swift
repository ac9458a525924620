import Foundation
import SharingOperation
import Testing

// The first part of the article on pattern matching and state management: hashable requests, and a
// mutation that reaches into the store of a query.

private struct User: Sendable {
  enum Relationship {
    case notFriends
    case friendRequestSent
    case friendRequestReceived
    case friends
    case currentUser
  }

  let id: Int
  var relationship: Relationship
}

extension User {
  static func friendsQuery(
    for id: Int
  ) -> some PaginatedRequest<Int, [Self]> {
    FriendsQuery(userId: id)
  }

  struct FriendsQuery: PaginatedRequest, Hashable {
    typealias PageID = Int
    typealias PageValue = [User]

    let userId: Int
    let initialPageId = 0

    func pageId(
      after page: PaginatedPage<Int, [User]>,
      using paging: PaginatedPaging<Int, [User]>,
      in context: OperationContext
    ) -> Int? {
      page.id + 1
    }

    func fetchPage(
      using paging: PaginatedPaging<Int, [User]>,
      in context: OperationContext,
      with continuation: OperationContinuation<[User], any Error>
    ) async throws -> [User] {
      try await fetchFriends(userId: userId, page: paging.pageId)
    }
  }
}

/// The name of the query in one of the listings.
private typealias UserFriendsQuery = User.FriendsQuery

/// Returns two users per page. Every user has the same friends.
private func fetchFriends(userId: Int, page: Int) async throws -> [User] {
  try await Backend.current.respond(to: "friends of \(userId), page \(page)")
  return [2 * page + 1, 2 * page + 2].map { User(id: $0, relationship: .notFriends) }
}

private func sendFriendRequest(userId: Int) async throws {
  try await Backend.current.respond(to: "request to \(userId)")
}

extension PaginatedPages<Int, [User]> {
  fileprivate func updateRelationship(
    for userId: Int,
    to relationship: User.Relationship
  ) -> Self {
    self.map { page in
      var page = page
      page.value = page.value.map { user in
        var user = user
        if user.id == userId {
          user.relationship = relationship
        }
        return user
      }
      return page
    }
  }
}

extension User {
  static let sendFriendRequestMutation = SendFriendRequestMutation()

  struct SendFriendRequestMutation: MutationRequest, Hashable {
    typealias Value = Void

    struct Arguments: Sendable {
      let userId: Int
    }

    func mutate(
      with arguments: Arguments,
      in context: OperationContext,
      with continuation: OperationContinuation<Void, any Error>
    ) async throws {
      try await sendFriendRequest(userId: arguments.userId)
    }
  }
}

/// Changes one list after the request.
private enum OneList {
  struct SendFriendRequestMutation: MutationRequest, Hashable {
    typealias Value = Void

    struct Arguments: Sendable {
      let userId: Int
    }

    func mutate(
      with arguments: Arguments,
      in context: OperationContext,
      with continuation: OperationContinuation<Void, any Error>
    ) async throws {
      try await sendFriendRequest(userId: arguments.userId)

      // Friend request sent successfully, now update the friends list.
      guard let client = context.operationClient else { return }
      let query = UserFriendsQuery(userId: arguments.userId)
      let store = client.store(for: query)
      store.withExclusiveAccess {
        store.currentValue = store.currentValue.updateRelationship(
          for: arguments.userId,
          to: .friendRequestSent
        )
      }
    }
  }
}

/// The default path of the article.
private struct Hashed: OperationRequest, Hashable {
  func run(
    isolation: isolated (any Actor)?, in context: OperationContext,
    with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int { 0 }
}

extension OperationRequest where Self: Hashable {
  var path: OperationPath { [self] }
}

@Suite struct StateAfterMutationTests {
  @Test("A hashable request is its own path")
  func paths() {
    #expect(Hashed().path == [Hashed()])
    #expect(User.FriendsQuery(userId: 7).path == [User.FriendsQuery(userId: 7)])
    #expect(User.friendsQuery(for: 7).path == [User.FriendsQuery(userId: 7)])
  }

  @Test("After a request, the list of its recipient displays that it was sent")
  func oneList() async throws {
    try await withLists { _, client async throws in
      try await client.store(for: OneList.SendFriendRequestMutation()).mutate(
        with: .init(userId: 2))
      #expect(relationships(with: 2, in: client) == [.friendRequestSent, .notFriends])
    }
  }

  @Test("A mutation alone does not change the lists")
  func noList() async throws {
    try await withLists { backend, client async throws in
      try await client.store(for: User.sendFriendRequestMutation).mutate(with: .init(userId: 2))
      #expect(backend.calls.last == "request to 2")
      #expect(relationships(with: 2, in: client) == [.notFriends, .notFriends])
    }
  }

  /// Calls `body` after the first pages of two lists were fetched.
  private func withLists(
    _ body: (Backend, OperationClient) async throws -> Void
  ) async throws {
    try await withBackend { backend, client async throws in
      for userId in 1...2 { try await client.store(for: User.FriendsQuery(userId: userId)).fetch() }
      try await body(backend, client)
    }
  }

  /// Returns the relationship with a user in the list of user 2, and in that of user 1.
  private func relationships(
    with userId: Int, in client: OperationClient
  ) -> [User.Relationship?] {
    [2, 1].map { owner in
      client.store(for: User.FriendsQuery(userId: owner)).currentValue.flatMap(\.value)
        .first { $0.id == userId }?.relationship
    }
  }
}
