import Operation
import Synchronization
import Testing

/// Values of pages are released in time, and without a lock.
@Suite struct PageLifetimeTests {
  /// A value whose deinitialiser reads its store, as a user's value may.
  final class Tracked: Sendable {
    let onDeinit: @Sendable () -> Void
    init(_ onDeinit: @escaping @Sendable () -> Void) { self.onDeinit = onDeinit }
    deinit { onDeinit() }
  }

  final class Reader: Sendable {
    private let action = Mutex<(@Sendable () -> Void)?>(nil)
    let deinitCount = Atomic(0)

    func setAction(_ new: (@Sendable () -> Void)?) {
      let old = action.withLock { action in
        defer { action = new }
        return action
      }
      withExtendedLifetime(old) {}
    }

    func read() {
      deinitCount.wrappingAdd(1, ordering: .relaxed)
      action.withLock { $0 }?()
    }
  }

  typealias Store = OperationStore<PaginatedState<Int, Tracked, any Error>>

  private func store(_ reader: Reader, maxPages: Int = .max) -> Store {
    let store = OperationClient(defaults: .quiet()).store(
      for: Paginated<Int, Tracked>(
        path: ["farewell"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 },
        previousPageId: { page, _ in page.id - 1 }
      ) { _, _, continuation in
        continuation.yield(Tracked(reader.read))
        return Tracked(reader.read)
      }.maxPages(maxPages))
    reader.setAction({ _ = store.currentValue.count })
    return store
  }

  @Test("Pages that are replaced may use their store in a deinitialiser")
  func pages() async throws {
    let reader = Reader()
    let store = store(reader, maxPages: 3)
    for _ in 0..<5 { try await store.fetchNextPage() }
    for _ in 0..<5 { try await store.fetchPreviousPage() }
    try await store.fetchAllPages()
    store.currentValue = []
    try await store.fetch()
    store.resetState()
    #expect(reader.deinitCount.load(ordering: .relaxed) > 20)
    reader.setAction(nil)
  }

  @Test("Attempts, values and failures that are replaced may use their store in a deinitialiser")
  func mutationValues() async throws {
    struct Failed: Error { let value: Tracked }
    let reader = Reader()
    let store = OperationClient(defaults: .quiet()).store(
      for: Mutation<Tracked, Tracked>(path: ["farewell"]) { _, _, continuation in
        continuation.yield(Tracked(reader.read))
        continuation.yield(Tracked(reader.read))
        continuation.yield(error: Failed(value: Tracked(reader.read)))
        return Tracked(reader.read)
      }.maxHistory(length: 2))
    reader.setAction({ _ = store.history.count })
    for _ in 0..<5 { try await store.mutate(with: Tracked(reader.read)) }
    _ = store.mutateTask(with: Tracked(reader.read))
    try await store.fetch()
    store.currentValue = nil
    store.resetState()
    #expect(reader.deinitCount.load(ordering: .relaxed) > 20)
    reader.setAction(nil)
  }

  @Test("ensure returns the pages that it has fetched, if a handler resets the store then")
  func ensureAfterReset() async throws {
    let client = OperationClient(defaults: .quiet())
    let request = Paginated<Int, Int>(
      path: ["pages"], initialPageId: 0, nextPageId: { _, _ in nil }
    ) { _, _ in 1 }
    let store = client.store(for: request)
    let subscription = store.subscribe { if case .runEnded = $0 { store.resetState() } }
    #expect(try await client.ensure(request).map(\.value) == [1])
    let reader = Query<[Int], any Error>(path: ["reader"]) {
      try await $0.ensure(request).map(\.value)
    }
    #expect(try await client.fetch(reader) == [1])
    subscription.cancel()
  }

  @Test("A query's value that a yield replaces may use its store in its deinitialiser")
  func queryValues() async throws {
    let reader = Reader()
    let store = OperationClient(defaults: .quiet()).store(
      for: Query(path: ["farewell"]) {
        (_, continuation: OperationContinuation<Tracked, any Error>) in
        continuation.yield(Tracked(reader.read))
        continuation.yield(Tracked(reader.read))
        return Tracked(reader.read)
      })
    reader.setAction({ _ = store.valueUpdateCount })
    for _ in 0..<3 { try await store.run() }
    store.resetState()
    // The task of the last run releases its result after the caller continues.
    #expect(await eventually { reader.deinitCount.load(ordering: .relaxed) == 9 })
    reader.setAction(nil)
  }
}
