import SharingOperation

/// Sends a friend request to a user.
///
/// Every cached list displays it at once, before the server has answered, also if a list is fetched
/// meanwhile. If the server refuses, the edit is removed from every list.
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
