import Observation
import SharingOperation

/// Two lists of friends on a screen, a chosen third one, and the button that sends a friend
/// request.
///
/// The wrappers notify observers themselves, so the macro has to ignore them.
@MainActor
@Observable
final class FriendsModel {
  @ObservationIgnored
  @SharedQuery(FriendsRequest(userID: 1)) var friendsOfAda

  @ObservationIgnored
  @SharedQuery(FriendsRequest(userID: 4)) var friendsOfDunja

  /// The number of Ada's friends that were loaded. A friend request changes the list but not the
  /// number, so readers of the number are not notified.
  @ObservationIgnored
  @SharedQuery(FriendsRequest(userID: 1), select: { $0.map(\.value.count).reduce(0, +) })
  var countOfAda

  /// The chosen list, or the one before until the chosen one has arrived.
  @ObservationIgnored
  @SharedQuery(FriendsRequest(userID: 1)) var chosenFriends

  @ObservationIgnored
  @SharedQuery(SendFriendRequest()) var latestRequest

  /// Loads all pages of a list, as a scroll to its end does.
  func scrollToEnd(of list: SharedQuery<FriendsRequest.State>) async throws {
    try await list.fetchNextPage()
    while list.hasNextPage { try await list.fetchNextPage() }
  }

  /// Chooses another list. The one before is displayed until the new one has arrived.
  func choose(_ userID: User.ID) {
    $chosenFriends.bind(to: FriendsRequest(userID: userID), keepingPrevious: true)
  }

  func sendRequest(to user: User) async throws {
    try await $latestRequest.mutate(with: .init(userID: user.id))
  }

  /// Returns whether a user has refused a request.
  func hasRefused(_ user: User) -> Bool {
    $latestRequest.history.contains { $0.arguments.userID == user.id && $0.status.isFailure }
  }
}
