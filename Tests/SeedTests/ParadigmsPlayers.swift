import Foundation
import SharingOperation
import Testing

// The queries, infinite queries and mutations of the article on the three of them.

private struct Player: Sendable, Codable, Equatable {
  let name: String
  let number: Int
}

private let fiveMinutes = Duration.seconds(5 * 60)

private struct PlayerQuery: QueryRequest, Hashable {
  let id: Int

  func fetch(
    in context: QueryContext,
    with continuation: QueryContinuation<Player>
  ) async throws -> Player {
    try await Backend.current.respond(to: "player \(id)")
    return Player(name: "Blob", number: id)
  }
}

/// Is satisfied while a user is logged in, which is always the case here.
private struct LoggedInUserSpecification: OperationRunSpecification {
  func isSatisfied(in context: QueryContext) -> Bool { true }

  func subscribe(
    in context: QueryContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    .empty
  }
}

extension OperationRunSpecification where Self == LoggedInUserSpecification {
  static var loggedInUser: Self { LoggedInUserSpecification() }
}

private let query = PlayerQuery(id: 200)
  .retry(limit: 3)
  .deduplicated()
  .stale(after: fiveMinutes)
  .refetchOnChange(of: .loggedInUser)

private struct PlayersPage: Sendable, Codable {
  let players: [Player]
  let nextPageKey: String?
  let previousPageKey: String?

  var isLastPage: Bool { nextPageKey == nil }
  var isFirstPage: Bool { previousPageKey == nil }
}

private struct PlayersQuery: InfiniteQueryRequest, Hashable {
  typealias PageID = String
  typealias PageValue = PlayersPage

  let listId: Int

  let initialPageId = "initial"

  func pageId(
    after page: InfiniteQueryPage<String, PlayersPage>,
    using paging: InfiniteQueryPaging<String, PlayersPage>,
    in context: QueryContext
  ) -> String? {
    page.value.isLastPage ? nil : page.value.nextPageKey
  }

  func pageId(
    before page: InfiniteQueryPage<String, PlayersPage>,
    using paging: InfiniteQueryPaging<String, PlayersPage>,
    in context: QueryContext
  ) -> String? {
    page.value.isFirstPage ? nil : page.value.previousPageKey
  }

  func fetchPage(
    using paging: InfiniteQueryPaging<String, PlayersPage>,
    in context: QueryContext,
    with continuation: QueryContinuation<PlayersPage>
  ) async throws -> PlayersPage {
    try await Backend.current.respond(to: "page \(paging.pageId)")
    let keys = ["earliest", "earlier", "initial", "later", "latest"]
    let index = keys.firstIndex(of: paging.pageId) ?? 0
    return PlayersPage(
      players: [Player(name: paging.pageId, number: index)],
      nextPageKey: keys.indices.contains(index + 1) ? keys[index + 1] : nil,
      previousPageKey: keys.indices.contains(index - 1) ? keys[index - 1] : nil)
  }
}

private struct CreatePlayerMutation: MutationRequest, Hashable {
  struct Arguments: Sendable {
    let name: String
    let number: Int
  }

  func mutate(
    with arguments: Arguments,
    in context: QueryContext,
    with continuation: QueryContinuation<Player>
  ) async throws -> Player {
    try await Backend.current.respond(to: "create \(arguments.name)")
    return Player(name: arguments.name, number: arguments.number)
  }
}

/// The view of the article, which is a plain model on this platform.
private struct CreatePlayerModel {
  @SharedQuery(CreatePlayerMutation()) var state
  var name = ""
  var number = 0

  var isInvalidName: Bool {
    $state.history.count { $0.arguments.name == name && $0.status.isFailure } >= 3
  }

  func createPlayer() async throws {
    try await $state.mutate(
      with: CreatePlayerMutation.Arguments(name: name, number: number)
    )
  }
}

private struct PlayersModel {
  @SharedQuery(PlayersQuery(listId: 20)) var state

  func fetch() async throws {
    // Fetching all pages.
    try await $state.fetch()  // Fetches initial page if no pages have been fetched yet.
    try await $state.fetchAllPages()

    // Fetching next page.
    // Fetches initial page if no pages have been fetched yet.
    try await $state.fetchNextPage()

    // Fetching previous page.
    // Fetches initial page if no pages have been fetched yet.
    try await $state.fetchPreviousPage()
  }
}

@Suite struct ParadigmsPlayersTests {
  @Test("Modifiers apply to the fetch: a retry, one run for two callers, and five fresh minutes")
  func modifiers() async throws {
    let clock = ManualClock()
    try await withBackend(clock: clock) { backend, client async throws in
      backend.refuse("player 200")
      let store = client.store(for: query)
      let first = Task.immediate { try await store.fetch() }
      let second = Task.immediate { try await store.fetch() }
      await clock.sleepers(atLeast: 1)
      await clock.advance(by: .seconds(1))
      #expect(try await first.value == Player(name: "Blob", number: 200))
      #expect(try await second.value.number == 200)
      #expect(backend.calls == ["player 200", "player 200"])
      await clock.advance(by: fiveMinutes - .seconds(1))
      #expect(!store.isStale)
      await clock.advance(by: .seconds(1))
      #expect(store.isStale)
    }
  }

  @Test("Without a page, fetches of all, next and previous pages fetch the initial page")
  func initialPage() async throws {
    try await withBackend { _, client async throws in
      try await client.store(for: PlayersQuery(listId: 1)).fetch()
      try await client.store(for: PlayersQuery(listId: 2)).fetchAllPages()
      try await client.store(for: PlayersQuery(listId: 3)).fetchNextPage()
      try await client.store(for: PlayersQuery(listId: 4)).fetchPreviousPage()
      for listId in 1...4 {
        #expect(client.store(for: PlayersQuery(listId: listId)).currentValue.ids == ["initial"])
      }
    }
  }

  @Test("Pages are added at both ends by the keys of the pages, until there are no more")
  func pages() async throws {
    try await withBackend { backend, client async throws in
      let store = client.store(for: PlayersQuery(listId: 20))
      try await store.fetch()
      try await store.fetchNextPage()
      try await store.fetchPreviousPage()
      #expect(store.currentValue.ids == ["earlier", "initial", "later"])
      try await store.fetchNextPage()
      #expect(try await store.fetchNextPage()?.id == nil)
      #expect(store.currentValue.ids == ["earlier", "initial", "later", "latest"])
      try await store.fetchAllPages()
      #expect(
        backend.calls.suffix(4) == ["page earlier", "page initial", "page later", "page latest"])
      for page in store.currentValue {
        #expect(page.value.players.map(\.name) == [page.id])
      }
    }
  }

  @Test("Next and previous pages are fetched in parallel, and all pages are fetched after both")
  func concurrency() async throws {
    try await withBackend { backend, client async throws in
      let store = client.store(for: PlayersQuery(listId: 20))
      try await store.fetch()
      backend.hold("page later")
      backend.hold("page earlier")
      let next = Task.immediate { try await store.fetchNextPage() }
      let previous = Task.immediate { try await store.fetchPreviousPage() }
      let all = Task.immediate { try await store.fetchAllPages() }
      await backend.calls(atLeast: 3)
      #expect(store.isLoadingNextPage && store.isLoadingPreviousPage && store.isLoadingAllPages)
      #expect(Set(backend.calls) == ["page initial", "page later", "page earlier"])
      backend.release("page later")
      backend.release("page earlier")
      #expect(try await next.value?.id == "later")
      #expect(try await previous.value?.id == "earlier")
      #expect(try await all.value.ids == ["earlier", "initial", "later"])
      #expect(backend.calls.suffix(3) == ["page earlier", "page initial", "page later"])
    }
  }

  @Test("The wrapper has the fetches of the store")
  func wrapper() async throws {
    try await withBackend { _, _ async throws in
      let model = PlayersModel()
      try await model.fetch()
      #expect(model.state.ids == ["earlier", "initial", "later"])
    }
  }

  @Test("A mutation is called with arguments, and again with the latest ones")
  func mutation() async throws {
    try await withBackend { backend, client async throws in
      let store = client.store(for: CreatePlayerMutation())
      await #expect(throws: MutationError.noArguments) { try await store.retryLatest() }
      let player = try await store.mutate(
        with: CreatePlayerMutation.Arguments(name: "Blob", number: 42)
      )
      #expect(player == Player(name: "Blob", number: 42))
      try await store.fetch()
      try await store.retryLatest()
      #expect(backend.calls == ["create Blob", "create Blob", "create Blob"])
    }
  }

  @Test("The history has three failed attempts with a name")
  func history() async throws {
    try await withBackend { backend, _ async throws in
      var model = CreatePlayerModel()
      model.name = "Blob"
      backend.refuse("create Blob", times: 3)
      for _ in 1...3 {
        #expect(!model.isInvalidName)
        let attempt = model
        await #expect(throws: Backend.Refused.self) { try await attempt.createPlayer() }
      }
      #expect(model.isInvalidName)
      model.name = "Blob Jr."
      try await model.createPlayer()
      #expect(!model.isInvalidName)
      #expect(model.state == Player(name: "Blob Jr.", number: 0))
      #expect(model.$state.history.map(\.status.isSuccess) == [false, false, false, true])
    }
  }
}
