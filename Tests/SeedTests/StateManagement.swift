import Foundation
import SharingOperation
import Testing

// The second part of the article on pattern matching and state management: a path of several
// elements, matching, optimistic changes, and refetching.

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

  struct FriendsQuery: PaginatedRequest {
    typealias PageID = Int
    typealias PageValue = [User]

    let userId: Int
    let initialPageId = 0

    var path: OperationPath {
      ["user-friends", userId]
    }

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

/// Changes all lists after the request.
private enum AllLists {
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

      // Friend request sent successfully, now update all
      // friends lists in the app.
      guard let client = context.operationClient else { return }
      let stores = client.stores(
        matching: ["user-friends"],
        of: User.FriendsQuery.State.self
      )
      for store in stores {
        store.withExclusiveAccess {
          store.currentValue = store.currentValue.updateRelationship(
            for: arguments.userId,
            to: .friendRequestSent
          )
        }
      }
    }
  }
}

/// Changes all lists before the request, and reverts the change when the request fails.
private enum Optimistic {
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
      // Optimistically update the user relationships, and reset them to the
      // default state if the mutation fails.
      do {
        updateRelationships(
          for: arguments.userId,
          to: .friendRequestSent,
          in: context
        )
        try await sendFriendRequest(userId: arguments.userId)
      } catch {
        updateRelationships(
          for: arguments.userId,
          to: .notFriends,
          in: context
        )
        throw error
      }
    }

    private func updateRelationships(
      for userId: Int,
      to relationship: User.Relationship,
      in context: OperationContext
    ) {
      guard let client = context.operationClient else { return }
      let stores = client.stores(
        matching: ["user-friends"],
        of: User.FriendsQuery.State.self
      )
      for store in stores {
        store.withExclusiveAccess {
          store.currentValue = store.currentValue.updateRelationship(
            for: userId,
            to: relationship
          )
        }
      }
    }
  }
}

/// Fetches all lists again after the request.
private enum Refetching {
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

      // Friend request sent successfully, now refetch all
      // friends lists in the app.
      guard let client = context.operationClient else { return }
      Task {
        await withThrowingTaskGroup(of: Void.self) { group in
          for store in client.stores(matching: ["user-friends"]) {
            group.addTask { try await store.fetch() }
          }
        }
      }
    }
  }
}

@Suite struct StateManagementTests {
  @Test("A query that is not hashable has a path of its own")
  func path() {
    #expect(User.FriendsQuery(userId: 7).path == ["user-friends", 7])
    #expect(User.friendsQuery(for: 7).path == ["user-friends", 7])
  }

  @Test("A prefix of the path finds all lists, typed and by path, and nothing else")
  func matching() async throws {
    try await withBackend { _, client async throws in
      let first = client.store(for: User.FriendsQuery(userId: 1))
      _ = client.store(for: User.FriendsQuery(userId: 2))
      _ = client.store(for: Query(path: ["user-friends", "count"]) { _ in 2 })
      _ = client.store(for: Query(path: [User.FriendsQuery.State.emptyValue.count]) { _ in 3 })
      let stores = client.stores(
        matching: ["user-friends"],
        of: User.FriendsQuery.State.self
      )
      #expect(Set(stores.map(\.path)) == [["user-friends", 1], ["user-friends", 2]])
      #expect(stores[["user-friends", 1]] === first)
      #expect(stores[["user-friends", "count"]] == nil)
      #expect(client.stores(matching: ["user-friends"]).count == 3)
    }
  }

  @Test("After a request, every list displays that it was sent, on the page of the user")
  func allLists() async throws {
    try await withLists { _, client async throws in
      try await client.store(for: User.FriendsQuery(userId: 2)).fetchNextPage()
      try await client.store(for: AllLists.SendFriendRequestMutation()).mutate(
        with: .init(userId: 2))
      #expect(relationships(with: 2, in: client) == [.friendRequestSent, .friendRequestSent])
      #expect(relationships(with: 1, in: client) == [.notFriends, .notFriends])
      #expect(client.store(for: User.FriendsQuery(userId: 2)).currentValue.ids == [0, 1])
    }
  }

  @Test("An optimistic request is displayed while it is in flight, and kept when it succeeds")
  func optimisticSuccess() async throws {
    try await withLists { backend, client async throws in
      backend.hold("request to 2")
      let store = client.store(for: Optimistic.SendFriendRequestMutation())
      let mutation = Task { try await store.mutate(with: .init(userId: 2)) }
      await backend.calls(atLeast: 3)
      #expect(relationships(with: 2, in: client) == [.friendRequestSent, .friendRequestSent])
      backend.release("request to 2")
      try await mutation.value
      #expect(relationships(with: 2, in: client) == [.friendRequestSent, .friendRequestSent])
    }
  }

  @Test("An optimistic request is removed from every list when it fails")
  func optimisticFailure() async throws {
    try await withLists { backend, client async throws in
      backend.hold("request to 2")
      backend.refuse("request to 2")
      let store = client.store(for: Optimistic.SendFriendRequestMutation())
      let mutation = Task { try await store.mutate(with: .init(userId: 2)) }
      await backend.calls(atLeast: 3)
      #expect(relationships(with: 2, in: client) == [.friendRequestSent, .friendRequestSent])
      backend.release("request to 2")
      await #expect(throws: Backend.Refused.self) { try await mutation.value }
      #expect(relationships(with: 2, in: client) == [.notFriends, .notFriends])
      #expect(store.status.isFailure)
    }
  }

  @Test("A request that fetches all lists again does not wait for them")
  func refetching() async throws {
    try await withLists { backend, client async throws in
      try await client.store(for: Refetching.SendFriendRequestMutation())
        .mutate(with: .init(userId: 2))
      await backend.calls(atLeast: 5)
      let refetches = Set(backend.calls.suffix(2))
      #expect(refetches == ["friends of 1, page 0", "friends of 2, page 0"])
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
