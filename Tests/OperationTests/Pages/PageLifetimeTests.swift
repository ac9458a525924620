import Operation
import Synchronization
import Testing

/// What pages hold goes away without a lock, and not later than it should.
@Suite struct PageLifetimeTests {
  /// Reads its store when it goes away, as a user's value may.
  final class Farewell: Sendable {
    let onDeinit: @Sendable () -> Void
    init(_ onDeinit: @escaping @Sendable () -> Void) { self.onDeinit = onDeinit }
    deinit { onDeinit() }
  }

  final class Reader: Sendable {
    private let look = Mutex<(@Sendable () -> Void)?>(nil)
    let farewells = Atomic(0)

    func look(at new: (@Sendable () -> Void)?) {
      let old = look.withLock { look in
        defer { look = new }
        return look
      }
      withExtendedLifetime(old) {}
    }

    func read() {
      farewells.wrappingAdd(1, ordering: .relaxed)
      look.withLock { $0 }?()
    }
  }

  typealias Store = OperationStore<PaginatedState<Int, Farewell, any Error>>

  private func store(_ reader: Reader, maxPages: Int = .max) -> Store {
    let store = OperationClient(defaults: .quiet()).store(
      for: Paginated<Int, Farewell>(
        path: ["farewell"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 },
        previousPageId: { page, _ in page.id - 1 }
      ) { _, _, continuation in
        continuation.yield(Farewell(reader.read))
        return Farewell(reader.read)
      }.maxPages(maxPages))
    reader.look(at: { _ = store.currentValue.count })
    return store
  }

  @Test("Pages that give way may use their store as they go")
  func farewells() async throws {
    let reader = Reader()
    let store = store(reader, maxPages: 3)
    for _ in 0..<5 { try await store.fetchNextPage() }
    for _ in 0..<5 { try await store.fetchPreviousPage() }
    try await store.fetchAllPages()
    store.currentValue = []
    try await store.fetch()
    store.resetState()
    #expect(reader.farewells.load(ordering: .relaxed) > 20)
    reader.look(at: nil)
  }

  @Test("Attempts, values and failures that give way may use their store as they go")
  func mutationFarewells() async throws {
    struct Failed: Error { let farewell: Farewell }
    let reader = Reader()
    let store = OperationClient(defaults: .quiet()).store(
      for: Mutation<Farewell, Farewell>(path: ["farewell"]) { _, _, continuation in
        continuation.yield(Farewell(reader.read))
        continuation.yield(Farewell(reader.read))
        continuation.yield(error: Failed(farewell: Farewell(reader.read)))
        return Farewell(reader.read)
      }.maxHistory(length: 2))
    reader.look(at: { _ = store.history.count })
    for _ in 0..<5 { try await store.mutate(with: Farewell(reader.read)) }
    _ = store.mutateTask(with: Farewell(reader.read))
    try await store.fetch()
    store.currentValue = nil
    store.resetState()
    #expect(reader.farewells.load(ordering: .relaxed) > 20)
    reader.look(at: nil)
  }

  @Test("A query's value that a yield replaced may use its store as it goes")
  func queryFarewells() async throws {
    let reader = Reader()
    let store = OperationClient(defaults: .quiet()).store(
      for: Query(path: ["farewell"]) {
        (_, continuation: OperationContinuation<Farewell, any Error>) in
        continuation.yield(Farewell(reader.read))
        continuation.yield(Farewell(reader.read))
        return Farewell(reader.read)
      })
    reader.look(at: { _ = store.valueUpdateCount })
    for _ in 0..<3 { try await store.run() }
    store.resetState()
    #expect(reader.farewells.load(ordering: .relaxed) == 9)
    reader.look(at: nil)
  }
}
