import SharingOperation
import Testing

@Suite struct FirstValueTests {
  private let client = OperationClient(defaults: .testing, clock: ManualClock())

  @Test("value() returns the cached value, also a stale one") func cached() async throws {
    // An automatic run could end after the write.
    let wrapper = SharedQuery(DetailQuery(id: 1).manual(), client: client)
    wrapper.withLock { $0 = "written" }
    wrapper.invalidate()
    #expect(try await wrapper.value() == "written")
  }

  @Test("value() waits for the first value of the run in flight") func waits() async throws {
    let gate = CancellableGate()
    let wrapper = SharedQuery(DetailQuery(id: 2, gate: gate), client: client)
    let value = Task { try await wrapper.value() }
    while wrapper.store?.leaseCount != 2 { await Task.yield() }
    gate.open()
    #expect(try await value.value == "detail 2")
  }

  @Test("value() waits for the run in flight, also after an invalidation") func outdated()
    async throws
  {
    let (calls, gate, ended) = (Counter(), CancellableGate(), Counter())
    let query = Query<Int, any Error>(path: ["outdated"]) { _ in
      let call = calls.increment()
      if call == 1 { await gate.wait() }
      return call
    }.manual()
    let (store, wrapper) = (client.store(for: query), SharedQuery(query, client: client))
    let run = Task { try await store.run() }
    while calls.count == 0 { await Task.yield() }
    client.invalidate(matching: ["outdated"], running: .nothing)
    let value = Task {
      defer { ended.increment() }
      return try await wrapper.value()
    }
    while store.leaseCount < 2, ended.count == 0 { await Task.yield() }
    gate.open()
    #expect(try await value.value == 1)
    _ = try await run.value
  }

  @Test("value() throws the error of the run") func error() async throws {
    let wrapper = SharedQuery(DetailQuery(id: 3, failure: Refusal(reason: "no")), client: client)
    await #expect(throws: Refusal.self) { try await wrapper.value() }
    let unbacked = SharedQuery<QueryState<Int, any Error>>()
    await #expect(throws: SharedQueryError.unbacked) { try await unbacked.value() }
  }

  @Test("value() returns the first pages") func pages() async throws {
    let wrapper = SharedQuery(
      Paginated(path: ["pages"], initialPageId: 0, nextPageId: { _, _ in nil }) { _, _ in 5 },
      client: client)
    #expect(try await wrapper.value().map(\.value) == [5])
  }

  @Test("value() returns the pages that it has fetched, if a handler resets the store then")
  func pagesAfterReset() async throws {
    let request = Paginated<Int, Int>(
      path: ["pages"], initialPageId: 0, nextPageId: { _, _ in nil }
    ) { _, _ in 5 }.manual()
    let store = client.store(for: request)
    let subscription = store.subscribe { if case .runEnded = $0 { store.resetState() } }
    #expect(try await SharedQuery(store).value().map(\.value) == [5])
    subscription.cancel()
  }
}
