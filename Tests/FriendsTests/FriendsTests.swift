import LoopbackServer
import Observation
import SharingOperation
import Synchronization
import Testing

@testable import friends

@MainActor
@Suite struct FriendsTests {
  @Test("A list grows page by page, until the server has no more pages")
  func pages() async throws {
    try await withFriends { _, model async throws in
      try await model.scrollToEnd(of: model.$friendsOfAda)
      #expect(model.friendsOfAda.ids == [1, 2, 3])
      #expect(model.friendsOfAda.map(\.value.count) == [5, 5, 4])
      #expect(!model.$friendsOfAda.hasNextPage)
      #expect(try await model.$friendsOfAda.fetchNextPage() == nil)
    }
  }

  @Test("An accepted request is displayed in both lists, also after they are fetched again")
  func taken() async throws {
    try await withFriends { client, model async throws in
      try await scrollToEnds(of: model)
      let user = try #require(model.friendsOfAda.user(12))
      let shown = follow(user, in: client)
      try await model.sendRequest(to: user)
      #expect(shown.all == [.notFriends, .friendRequestSent])
      #expect(model.friendsOfDunja.user(12)?.relationship == .friendRequestSent)
      try await model.$friendsOfAda.fetchAllPages()
      #expect(model.friendsOfAda.user(12)?.relationship == .friendRequestSent)
      #expect(!model.hasRefused(user))
    }
  }

  @Test("A refused request is displayed at first, and then removed from both lists")
  func refused() async throws {
    try await withFriends { client, model async throws in
      try await scrollToEnds(of: model)
      let user = try #require(model.friendsOfAda.user(10))
      let shown = follow(user, in: client)
      let refusal = FriendsError(status: 403, message: "Jette takes no friend requests.")
      await #expect(throws: refusal) { try await model.sendRequest(to: user) }
      #expect(shown.all == [.notFriends, .friendRequestSent, .notFriends])
      #expect(model.friendsOfDunja.user(10)?.relationship == .notFriends)
      #expect(model.hasRefused(user))
    }
  }

  @Test("A chosen list replaces the one before when it has arrived, and not earlier")
  func chosen() async throws {
    let behaviour = ServerBehaviour(
      latency: .zero, faults: [.init("/users/2/friends", .always, status: 500)])
    try await withFriends(behaviour) { _, model async throws in
      let ofAda = try await model.$chosenFriends.value()
      #expect(ofAda.user(4)?.name == "Dunja" && !model.$chosenFriends.isPrevious)
      model.choose(2)
      #expect(model.chosenFriends == ofAda)
      await #expect(throws: FriendsError.self) { try await model.$chosenFriends.fetch() }
      #expect(model.$chosenFriends.error is FriendsError)
      #expect(model.chosenFriends == ofAda && model.$chosenFriends.isPrevious)
      model.choose(4)
      let ofDunja = try await model.$chosenFriends.value()
      #expect(model.chosenFriends == ofDunja && ofDunja != ofAda)
      #expect(!model.$chosenFriends.isPrevious)
    }
  }

  @Test("A friend request notifies the readers of the list, but not those of the count")
  func count() async throws {
    try await withFriends { _, model async throws in
      try await model.scrollToEnd(of: model.$friendsOfAda)
      #expect(model.countOfAda == 14)
      let notified = Lines<String>()
      withObservationTracking {
        _ = model.friendsOfAda
      } onChange: {
        notified.add("list")
      }
      withObservationTracking {
        _ = model.countOfAda
      } onChange: {
        notified.add("number")
      }
      try await model.sendRequest(to: try #require(model.friendsOfAda.user(12)))
      #expect(notified.all == ["list"])
      model.$friendsOfAda.resetState()
      #expect(notified.all == ["list", "number"])
    }
  }

  @Test("The story prints an accepted request and a refused one")
  func story() async throws {
    try await withFriends { _, model async throws in
      let printed = Lines<String>()
      try await Story(model: model) { printed.add($0) }.run()
      #expect(printed.all.contains("  Ada has 14 friends"))
      #expect(printed.all.contains { $0.hasPrefix("  Bea: Carlo, ") })
      #expect(printed.all.contains("  in the list of Ada, Lotte is: request sent"))
      #expect(printed.all.contains("  the server has accepted it"))
      #expect(printed.all.contains("  in the list of Dunja, Jette is: no friend yet"))
      #expect(printed.all.suffix(2) == ["  to Lotte: sent", "  to Jette: refused"])
    }
  }

  private func withFriends(
    _ behaviour: ServerBehaviour = ServerBehaviour(latency: .zero),
    _ body: (OperationClient, FriendsModel) async throws -> Void
  ) async throws {
    let server = LoopbackServer(router: Router(FriendRoutes()), behaviour: behaviour)
    try server.start()
    defer { server.stop() }
    var context = OperationContext()
    context.api = FriendsAPI(url: server.baseURL)
    let client = OperationClient(defaults: .testing, context: context)
    try await OperationClient.withCurrent(client) { try await body(client, FriendsModel()) }
  }

  private func scrollToEnds(of model: FriendsModel) async throws {
    try await model.scrollToEnd(of: model.$friendsOfAda)
    try await model.scrollToEnd(of: model.$friendsOfDunja)
  }

  /// Records every relationship that Ada's list displays for a user, as long as the lines are
  /// retained.
  private func follow(_ user: User, in client: OperationClient) -> Lines<User.Relationship> {
    let shown = Lines<User.Relationship>()
    let list = client.store(for: FriendsRequest(userID: 1))
    let subscription = list.subscribe { [weak shown] event in
      guard let shown, case .stateChanged(let state) = event,
        let relationship = state.currentValue.user(user.id)?.relationship,
        shown.all.last != relationship
      else { return }
      shown.add(relationship)
    }
    shown.keep(subscription)
    return shown
  }
}

/// Lines that any thread may append to, and the subscription that appends them.
private final class Lines<Line: Sendable>: Sendable {
  private let lines = Mutex<[Line]>([])
  private let subscription = Mutex(OperationSubscription.empty)

  var all: [Line] { lines.withLock { $0 } }

  func add(_ line: Line) { lines.withLock { $0.append(line) } }
  func keep(_ subscription: OperationSubscription) {
    self.subscription.withLock { $0 = subscription }
  }
}
