import SharingOperation
import Synchronization

/// Scrolls through two lists of friends, chooses a third one, sends two friend requests, and prints what
/// happens.
@MainActor
struct Story {
  let model: FriendsModel
  let write: @Sendable (String) -> Void

  func run() async throws {
    write("Two lists, page by page, until there is no further page.")
    try await scroll(model.$friendsOfAda, of: "Ada")
    try await scroll(model.$friendsOfDunja, of: "Dunja")
    write("  Ada has \(model.countOfAda) friends")
    try await choose(2, "Bea")
    try await sendRequest(to: "Lotte")
    try await sendRequest(to: "Jette")

    write("")
    write("The history of the mutation.")
    for attempt in model.$latestRequest.history {
      let user = model.friendsOfAda.user(attempt.arguments.userID)
      write("  to \(user?.name ?? "?"): \(attempt.status.isSuccess ? "sent" : "refused")")
    }
  }

  private func scroll(_ list: SharedQuery<FriendsRequest.State>, of owner: String) async throws {
    try await model.scrollToEnd(of: list)
    for page in list.wrappedValue {
      write("  \(owner), page \(page.id): \(page.value.map(\.name).joined(separator: ", "))")
    }
  }

  private func choose(_ userID: User.ID, _ owner: String) async throws {
    write("")
    write("Another list: the one before stays until the first page of \(owner) has come.")
    model.choose(userID)
    if model.$chosenFriends.isPrevious { write("  meanwhile: \(names(of: model.chosenFriends))") }
    let friends = try await model.$chosenFriends.value()
    write("  \(owner): \(names(of: friends))")
  }

  private func names(of pages: FriendsRequest.State.StateValue) -> String {
    pages.first?.value.map(\.name).joined(separator: ", ") ?? "nobody"
  }

  private func sendRequest(to name: String) async throws {
    guard let user = model.friendsOfAda.flatMap(\.value).first(where: { $0.name == name }) else {
      return write("There is no \(name) in the list of Ada.")
    }
    write("")
    write("A friend request to \(name): displayed at once, in both lists.")
    let subscriptions = [
      follow(user.id, in: model.$friendsOfAda, of: "Ada"),
      follow(user.id, in: model.$friendsOfDunja, of: "Dunja"),
    ]
    defer { for subscription in subscriptions { subscription.cancel() } }
    do {
      try await model.sendRequest(to: user)
      write("  the server has accepted it")
    } catch let error as FriendsError {
      write("  the server refused it, and it is removed from both lists: \(error)")
    }
  }

  /// Prints the relationship that a list displays for a user, now and whenever it changes.
  private func follow(
    _ userID: User.ID, in list: SharedQuery<FriendsRequest.State>, of owner: String
  ) -> OperationSubscription {
    let told = Mutex<User.Relationship?>(nil)
    return list.store?.subscribe { [write] event in
      guard case .stateChanged(let state) = event, let user = state.currentValue.user(userID),
        told.withLock({ $0.replace(with: user.relationship) }) != user.relationship
      else { return }
      write("  in the list of \(owner), \(user.name) is: \(user.relationship)")
    } ?? .empty
  }
}

extension Optional {
  /// Replaces the value, and returns the old one.
  fileprivate mutating func replace(with value: Wrapped) -> Wrapped? {
    defer { self = value }
    return self
  }
}
