import FoundationEssentials
import Testing

@testable import Operation

@Suite("Restored values: their dates, and removed stores")
struct RestoredValueTests {
  private func numbers() -> Query<[Int], any Error> {
    Query(path: ["q"]) { _ in [1, 2, 3] }
  }

  @Test("A value that only edits have made is not saved until it is fetched")
  func onlyEdited() async throws {
    let program = SavedProgram()
    let query = numbers().neverStale().manual().persisted()
    let store = program.client.store(for: query)
    for await state in store.states where !state.isRestoring { break }
    await store.optimistically {
      $0 = [9]
    } while: {
    }
    try await program.client.flush()
    #expect(store.currentValue == [9] && store.isStale)
    #expect(program.storage.entries.isEmpty)
    try await store.fetch()
    try await program.client.flush()

    let next = program.restarted()
    let restored = next.client.store(for: query)
    for await state in restored.states where !state.isRestoring { break }
    #expect(restored.currentValue == [1, 2, 3])
    #expect(restored.valueLastUpdatedAt == savedStart)
    try await next.client.flush()
  }

  @Test("An initial value that was edited is restored with the date of its store")
  func editedInitialValue() async throws {
    let program = SavedProgram()
    let query = numbers().stale(after: .seconds(100)).manual().persisted()
    let store = program.client.store(for: query, initialValue: [8])
    for await state in store.states where !state.isRestoring { break }
    await program.clock.advance(by: .seconds(50))
    await store.optimistically {
      $0?.append(9)
    } while: {
    }
    try await program.client.flush()

    for (age, isStale) in [(49, false), (50, true)] {
      let next = program.restarted(after: .seconds(age))
      let restored = next.client.store(for: query)
      for await state in restored.states where !state.isRestoring { break }
      #expect(restored.currentValue == [8, 9])
      #expect(restored.valueLastUpdatedAt == savedStart)
      #expect(restored.isStale == isStale)
      try await next.client.flush()
    }
  }

  @Test("A list of no pages that was set is restored with its date")
  func noPages() async throws {
    let program = SavedProgram()
    let feed = Paginated(path: ["q"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 }) {
      (paging: PaginatedPaging<Int, Int>, _) async throws -> Int in paging.pageId
    }.manual().persisted()
    let store = program.client.store(for: feed)
    store.currentValue = []
    try await program.client.flush()
    let next = program.restarted()
    let restored = next.client.store(for: feed)
    for await state in restored.states where !state.isRestoring { break }
    #expect(restored.currentValue == [])
    #expect(restored.valueLastUpdatedAt == savedStart)
    try await next.client.flush()
  }

  @Test("A removed store sets nothing aside in place of what its successor has saved")
  func settingAsideForRemovedStore() async throws {
    let storage = MemoryStorage(["values/q": savedEntry("garbage")])
    let held = HeldStorage(base: storage)
    let client = savingClient(held)
    let query = numbers().manual().persisted()
    let reports = EventLog<OperationIssue>()
    let removed = OperationIssue.withHandler({ reports.append($0) }) {
      client.store(for: query)
    }
    await held.loads.wait(for: 1)
    client.clearStore(with: ["q"])
    let store = client.store(for: query)
    store.currentValue = [4]
    try await client.flush()
    #expect(storage.entries["values/q"]?.text == "[4]")

    held.gate.open()
    for await state in removed.states where !state.isRestoring { break }
    #expect(storage.entriesSetAside.isEmpty && reports.values.isEmpty)
    try await client.flush()
    #expect(storage.entries["values/q"]?.text == "[4]")
  }

  @Test(
    "What a successor saves while an entry is set aside for a removed store is not moved with it")
  func removalWhileSettingAside() async throws {
    let storage = MemoryStorage(["values/q": savedEntry("garbage")])
    let (begun, end) = (EventLog<Int>(), AsyncGate())
    let held = HeldStorage(
      base: storage,
      beforeSettingAside: {
        begun.append(0)
        await end.wait()
      })
    held.gate.open()
    let clock = ManualClock(now: savedStart)
    let client = OperationClient(defaults: .testing, clock: clock, storage: held)
    let query = numbers().manual().persisted()
    let removed = OperationIssue.withHandler({ _ in }) { client.store(for: query) }
    await begun.wait(for: 1)
    client.clearStore(with: ["q"])
    let store = client.store(for: query)
    for await state in store.states where !state.isRestoring { break }
    store.currentValue = [4]
    let flush = Task.immediate { try await client.flush() }
    await clock.settle()
    end.open()
    try await flush.value
    for await state in removed.states where !state.isRestoring { break }
    #expect(storage.entries["values/q"]?.text == "[4]")
    #expect(storage.entriesSetAside.values.map(\.text) == ["garbage"])
  }
}
