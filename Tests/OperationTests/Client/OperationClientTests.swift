import FoundationEssentials
import Operation
import Testing

@Suite("A client") struct OperationClientTests {
  private struct Fetch: QueryRequest, Hashable {
    let id: Int
    func fetch(
      in context: OperationContext, with continuation: OperationContinuation<Int, any Error>
    ) async throws -> Int { id }
  }

  private enum Mark: OperationContext.Key { static var defaultValue: String { "" } }

  @Test("Requests of one type on one path share a store, whatever the modifiers")
  func oneStore() {
    let client = OperationClient()
    let store = client.store(for: Fetch(id: 1))
    #expect(client.store(for: Fetch(id: 1)) === store)
    #expect(client.store(for: Fetch(id: 1).retry(limit: 2).stale(after: .seconds(1))) === store)
    #expect(client.store(for: Fetch(id: 2)) !== store)
    #expect(client.store(with: [Fetch(id: 1)])?.isOpaque(of: store) == true)
  }

  @Test("A look-up by path is exact")
  func exact() {
    let client = OperationClient()
    let store = client.store(for: Query(path: ["a", 1]) { _ in 1 })
    #expect(client.store(with: ["a", 1])?.isOpaque(of: store) == true)
    #expect(client.store(with: ["a"]) == nil)
    #expect(client.store(with: ["a", 1, 2]) == nil)
    #expect(client.store(with: ["a", "1"]) == nil)
    #expect(client.store(with: ["a", 1.0]) == nil)
    #expect(client.store(with: []) == nil)
  }

  @Test("A present store keeps its state, and an initial value is only for a new one")
  func initialValue() {
    let client = OperationClient()
    let query = Query(path: ["a"]) { _ in 1 }
    #expect(client.store(for: query, initialValue: 5).currentValue == 5)
    #expect(client.store(for: query, initialValue: 6).currentValue == 5)
    let other = Query(path: ["b"]) { _ in 1 }
    #expect(client.store(for: other, initialState: QueryState(initialValue: 7)).initialValue == 7)
    #expect(client.store(for: Query(path: ["c"]) { _ in 1 }).currentValue == nil)
  }

  @Test("A cleared store continues to work for its owners, and the path gets a new one")
  func clear() {
    let client = OperationClient()
    let query = Query(path: ["a"]) { _ in 1 }
    let old = client.store(for: query)
    old.currentValue = 3
    client.clearStore(with: ["a"])
    client.clearStore(with: ["a"])
    #expect(client.store(with: ["a"]) == nil)
    let new = client.store(for: query)
    #expect(new !== old)
    #expect(new.currentValue == nil)
    old.currentValue = 4
    #expect(old.currentValue == 4)
  }

  @Test("Many threads that look up one request get one store", arguments: 0..<200)
  func threads(_: Int) async {
    let client = OperationClient()
    let stores = Recorder<OperationStore<QueryState<Int, any Error>>>()
    await onThreads(4) { _ in stores.append(client.store(for: Fetch(id: 1))) }
    #expect(Set(stores.all.map(ObjectIdentifier.init)).count == 1)
  }

  @Test("The setup of a request may look up another store of its client, and is called once")
  func setup() {
    struct Outer: QueryRequest {
      let calls: Counter
      var path: OperationPath { ["outer"] }
      func setup(context: inout OperationContext) {
        calls.increment()
        context[Mark.self] = "\(context.operationClient?.store(for: Fetch(id: 9)).path.count ?? 0)"
      }
      func fetch(
        in context: OperationContext, with continuation: OperationContinuation<String, any Error>
      ) async throws -> String { context[Mark.self] }
    }
    let client = OperationClient()
    let calls = Counter()
    #expect(client.store(for: Outer(calls: calls)).context[Mark.self] == "1")
    _ = client.store(for: Outer(calls: calls))
    #expect(calls.value == 1)
    #expect(client.store(with: [Fetch(id: 9)]) != nil)
  }

  @Test("The stores of a client have its clock and its context, and refer to it weakly")
  func context() {
    let clock = ManualClock(now: Date(timeIntervalSince1970: 77))
    var context = OperationContext()
    context[Mark.self] = "client"
    let client = OperationClient(clock: clock, context: context)
    let store = client.store(for: Fetch(id: 1))
    #expect(store.context.operationClock.now() == clock.now())
    #expect(store.context[Mark.self] == "client")
    #expect(store.context.operationClient === client)
    #expect(OperationContext().operationClient == nil)
  }

  @Test("The shared client is that of the scope, also for its child tasks and its tasks")
  func shared() async {
    let outer = OperationClient.shared
    let client = OperationClient()
    let inner = OperationClient()
    #expect(OperationClient.withCurrent(client) { OperationClient.shared } === client)
    await OperationClient.withCurrent(client) {
      async let child = OperationClient.shared
      #expect(await child === client)
      #expect(await Task { OperationClient.shared }.value === client)
      #expect(await Task.detached { OperationClient.shared }.value === outer)
      OperationClient.withCurrent(inner) { #expect(OperationClient.shared === inner) }
      #expect(OperationClient.shared === client)
    }
    #expect(OperationClient.shared === outer)
  }
}
