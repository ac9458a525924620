import Observation
import SharingOperation

/// Two lists of friends on a screen, and the button that sends a friend request.
///
/// The wrappers notify observers themselves, so the macro has to ignore them.
@MainActor
@Observable
final class FriendsModel {
  @ObservationIgnored
  @SharedQuery(FriendsRequest(userID: 1)) var friendsOfAda

  @ObservationIgnored
  @SharedQuery(FriendsRequest(userID: 4)) var friendsOfDunja

  @ObservationIgnored
  @SharedQuery(SendFriendRequest()) var latestRequest

  /// Loads all pages of a list, as a user does who scrolls down.
  func scrollToEnd(of list: SharedQuery<FriendsRequest.State>) async throws {
    try await list.fetchNextPage()
    while list.hasNextPage { try await list.fetchNextPage() }
  }

  func sendRequest(to user: User) async throws {
    try await $latestRequest.mutate(with: .init(userID: user.id))
  }

  /// Returns whether a user has refused a request.
  func hasRefused(_ user: User) -> Bool {
    $latestRequest.history.contains { $0.arguments.userID == user.id && $0.status.isFailure }
  }
}
