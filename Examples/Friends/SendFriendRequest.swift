import SharingOperation

/// Asks somebody to be a friend.
///
/// Every list that is there shows it at once, before the server has answered, also over a list that
/// is fetched meanwhile. If the server refuses, every list is as if nobody had asked.
struct SendFriendRequest: MutationRequest, Hashable {
  struct Arguments: Sendable {
    let userID: User.ID
  }

  func mutate(
    with arguments: Arguments, in context: OperationContext,
    with continuation: OperationContinuation<User, any Error>
  ) async throws -> User {
    guard let client = context.operationClient else {
      return try await context.api.sendFriendRequest(to: arguments.userID)
    }
    return try await client.optimistically(
      matching: FriendsRequest.pathOfAll, of: FriendsRequest.State.self
    ) { friends in
      friends = friends.settingRelationship(of: arguments.userID, to: .friendRequestSent)
    } while: {
      try await context.api.sendFriendRequest(to: arguments.userID)
    }
  }
}
