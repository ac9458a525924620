import FoundationEssentials
@testable import Operation
import Testing

/// Promise 12 for paths.
@Suite("Bad paths") struct PathClashTests {
  private struct First: QueryRequest {
    var path: OperationPath { ["shared", 1] }
    func fetch(
      in context: OperationContext, with continuation: OperationContinuation<Int, any Error>
    ) async throws -> Int { 1 }
  }

  private struct Second: QueryRequest {
    var path: OperationPath { ["shared", 1] }
    func fetch(
      in context: OperationContext, with continuation: OperationContinuation<Int, any Error>
    ) async throws -> Int { 2 }
  }

  private func issues(_ body: () -> Void) -> [OperationIssue] {
    let issues = Recorder<OperationIssue>()
    OperationIssue.withHandler({ issues.append($0) }, operation: body)
    return issues.all
  }

  @Test("The second type on a path does not read what is saved for the first one")
  func savedClash() async throws {
    let entries = ["values/shared/1": savedEntry("{")]
    let storage = MemoryStorage(entries)
    let client = OperationClient(defaults: .testing, storage: storage)
    let first = client.store(for: First().manual())
    let reports = await OperationTests.issues {
      let second = client.store(for: Second().manual().persisted())
      for await state in second.states where !state.isRestoring { break }
    }.issues
    #expect(reports.map(\.kind) == [.pathClash])
    #expect(storage.entries == entries)
    withExtendedLifetime(first) {}
  }

  @Test("Two types on one path are reported once, with the path and both types")
  func report() {
    let client = OperationClient()
    let reported = issues {
      _ = client.store(for: First())
      _ = client.store(for: Second())
      _ = client.store(for: Second().retry(limit: 1))
      _ = client.store(for: First())
    }
    #expect(reported.map(\.kind) == [.pathClash])
    let message = reported.first?.message ?? ""
    #expect(message.contains("[\"shared\", 1]"))
    #expect(message.contains("First"))
    #expect(message.contains("Second"))
  }

  @Test("A mapped query has its own path, which begins with the path of the original query")
  func mapped() {
    let client = OperationClient()
    let reported = issues {
      let stores = [
        client.store(for: First().map { "\($0)" }), client.store(for: First().map { "\($0)!" }),
      ]
      #expect(stores[0] !== stores[1])
      _ = client.store(for: First())
      #expect(client.stores(matching: First().path).count == 3)
    }
    #expect(reported.isEmpty)
  }

  @Test("Both types have their own store and state, and the path finds the first store")
  func ownStates() async throws {
    let client = OperationClient(defaults: .testing)
    try await OperationIssue.withHandler({ _ in }) { () async throws -> Void in
      let first = client.store(for: First())
      let second = client.store(for: Second())
      #expect(first !== second)
      #expect(try await first.run() == 1)
      #expect(try await second.run() == 2)
      #expect(client.store(for: First()).currentValue == 1)
      #expect(client.store(for: Second()).currentValue == 2)
      #expect(client.store(for: Second()) === second)
      #expect(client.store(with: ["shared", 1])?.isOpaque(of: first) == true)
      client.clearStore(with: ["shared", 1])
      #expect(client.store(for: Second()) !== second)
      #expect(client.store(with: ["shared", 1])?.currentValue as? Int == nil)
    }
  }

  @Test("A store that clashes counts as unused") func limited() {
    let client = OperationClient(
      defaults: .testing, retention: .unusedFor(.seconds(300)).limited(to: 1))
    _ = issues {
      _ = client.store(for: First())
      _ = client.store(for: Second())
    }
    #expect(client.stores(matching: []).count == 1)
    #expect(client.store(with: ["shared", 1])?.base is OperationStore<Second.State>)
  }

  @Test("Closures with different types of values clash, and those with one type are one query")
  func closures() {
    let client = OperationClient()
    let reported = issues {
      let numbers = client.store(for: Query(path: ["a"]) { _ in 1 })
      let others = client.store(for: Query(path: ["a"]) { _ in 2 })
      #expect(others === numbers)
      _ = client.store(for: Query(path: ["a"]) { _ in "text" })
    }
    #expect(reported.map(\.kind) == [.pathClash])
  }

  @Test("An empty path is reported with the type, and works")
  func emptyPath() async throws {
    let client = OperationClient(defaults: .testing)
    let query = Query(path: []) { _ in 1 }
    let reported = issues { _ = client.store(for: query) }
    #expect(reported.map(\.kind) == [.emptyPath])
    #expect(reported.first?.message.contains("Query<Int") == true)
    #expect(issues { _ = client.store(for: query) }.isEmpty)
    #expect(try await client.store(for: query).run() == 1)
  }

  @Test("The index keeps the first store of a path and those that clash, and removes all of them")
  func index() {
    var index = StoreIndex()
    func insert<Request: StatefulOperationRequest>(
      _ request: Request, _ state: Request.State
    ) -> (store: OpaqueOperationStore, use: StoreIndex.Use) {
      let store = OperationStore.detached(operation: request, initialState: state)
      let opaque = OpaqueOperationStore(store)
      let lookup = StoreIndex.Lookup(of: request, default: .forever)
      return (opaque, index.insert(opaque, for: lookup, at: .zero))
    }
    let first = insert(First(), QueryState())
    #expect(first.use.store.id == first.store.id && first.use.clashing == nil)
    #expect(insert(First(), QueryState()).use.store.id == first.store.id)
    let second = insert(Second(), QueryState())
    #expect(second.use.store.id == second.store.id && second.use.clashing == First.self)
    #expect(insert(Second(), QueryState()).use.store.id == second.store.id)
    #expect(index.entries.tree(matching: []).values.flatMap(\.references).count == 2)
    let removed = index.remove(index.stores(at: ["shared", 1]))
    #expect(removed.count == 2)
    #expect(removed.first.map { ObjectIdentifier($0.base) } == ObjectIdentifier(first.store.base))
    let again = index.remove(index.stores(at: ["shared", 1]))
    #expect(again.isEmpty)
    #expect(index.entries.tree(matching: []).values.flatMap(\.references).count == 0)
    #expect(index.store(at: ["shared", 1]) == nil)
  }

  @Test("A rule for another state is reported with the path and the state, and the value is stale")
  func stateMismatch() {
    // The timeout turns the failure, and so the state, into another one.
    let query = TypedQuery(script: Script(), path: ["typed"]).staleWhen { _, _ in false }
      .timeout(after: .seconds(9))
    let store = OperationClient().store(for: query)
    store.currentValue = 1
    let reported = issues { #expect(store.isStale) }
    #expect(reported.map(\.kind) == [.stateMismatch])
    #expect(reported.first?.message.contains("[\"typed\"]") == true)
    #expect(reported.first?.message.contains("QueryState<Int") == true)
  }
}
