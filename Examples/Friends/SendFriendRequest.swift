import SharingOperation

/// Asks somebody to be a friend.
///
/// Every list that is there shows it at once, before the server has answered. If the server
/// refuses, every list takes it back.
struct SendFriendRequest: MutationRequest, Hashable {
  struct Arguments: Sendable {
    let userID: User.ID
  }

  func mutate(
    with arguments: Arguments, in context: OperationContext,
    with continuation: OperationContinuation<User, any Error>
  ) async throws -> User {
    show(.friendRequestSent, of: arguments.userID, in: context)
    do {
      return try await context.api.sendFriendRequest(to: arguments.userID)
    } catch {
      show(.notFriends, of: arguments.userID, in: context)
      throw error
    }
  }

  /// Changes all lists of friends that the client holds, whosever they are.
  private func show(
    _ relationship: User.Relationship, of userID: User.ID, in context: OperationContext
  ) {
    guard let client = context.operationClient else { return }
    let lists = client.stores(matching: FriendsRequest.pathOfAll, of: FriendsRequest.State.self)
    for list in lists {
      // Nobody else writes between the read and the write.
      list.withExclusiveAccess {
        list.currentValue = list.currentValue.settingRelationship(of: userID, to: relationship)
      }
    }
  }
}
