import Testing

@testable import Operation

/// How far an invalidation is passed on from a store that it has marked.
@Suite("Marks of an invalidation") struct InvalidationMarkTests {
  private let client = OperationClient(defaults: .quiet())

  private func query(_ id: Int) -> Query<Int, any Error> {
    Query(path: ["number", id]) { _ in id }
  }

  private func sum(of query: Query<Int, any Error>) -> Query<Int, any Error> {
    Query(path: ["sum"]) { context in try await context.ensure(query) }
  }

  private func mark<State>(_ store: OperationStore<State>) -> String {
    switch store.perform(.mark) {
    case .done: "done"
    case .marked: "marked"
    case .inAccess: "in access"
    case .run: "run"
    }
  }

  @Test("An invalidation ends at a store that is neither observed nor read by another request")
  func marks() async throws {
    let store = client.store(for: query(1))
    #expect(mark(store) == "done" && store.isInvalidated)
    let subscription = store.subscribe { _ in }
    #expect(mark(store) == "marked")
    store.withExclusiveAccess { #expect(mark(store) == "in access") }
    subscription.cancel()
    #expect(mark(store) == "done")
    let reader = client.store(for: sum(of: query(1)))
    try await reader.run()
    #expect(mark(store) == "marked")
    #expect(mark(reader) == "done")
    #expect(mark(client.store(for: query(2))) == "done")
  }

  @Test(
    "A store that is created again on a path that is read passes invalidations on to its readers")
  func again() async throws {
    let reader = client.store(for: sum(of: query(1)))
    try await reader.run()
    client.clearStore(with: ["number", 1])
    let store = client.store(for: query(1))
    #expect(mark(store) == "marked")
    #expect(!reader.isInvalidated)
    client.invalidate(matching: ["number"])
    #expect(reader.isInvalidated)
  }
}
