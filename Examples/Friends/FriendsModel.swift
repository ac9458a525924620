import Observation
import SharingOperation

/// Two lists of friends that are on the screen, and the button that sends a friend request.
///
/// The wrappers do their own tracking, property by property, so the macro is to leave them alone.
@MainActor
@Observable
final class FriendsModel {
  @ObservationIgnored
  @SharedQuery(FriendsRequest(userID: 1)) var friendsOfAda

  @ObservationIgnored
  @SharedQuery(FriendsRequest(userID: 4)) var friendsOfDunja

  @ObservationIgnored
  @SharedQuery(SendFriendRequest()) var latestRequest

  /// Loads a list as far as it goes, as somebody does who scrolls down.
  func scrollToEnd(of list: SharedQuery<FriendsRequest.State>) async throws {
    try await list.fetchNextPage()
    while list.hasNextPage { try await list.fetchNextPage() }
  }

  func sendRequest(to user: User) async throws {
    try await $latestRequest.mutate(with: .init(userID: user.id))
  }

  /// Whether there is no use in asking somebody again.
  func hasRefused(_ user: User) -> Bool {
    $latestRequest.history.contains { $0.arguments.userID == user.id && $0.status.isFailure }
  }
}
