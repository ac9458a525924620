import Operation
import Testing

/// What a store displays after the cancellation of one of several runs that have yielded.
@Suite("Yields of several runs", .timeLimit(.minutes(5))) struct YieldUndoingTests {
  private let remote = Remote<[Int]>()

  /// Returns a store with runs in flight.
  private func store(
    runs count: Int
  ) async -> (OperationStore<QueryState<[Int], any Error>>, [Task<[Int], any Error>]) {
    let store = OperationStore.detached(query: remote.query().deduplicated { _, _ in false })
    var runs: [Task<[Int], any Error>] = []
    for call in 1...count {
      runs.append(Task { try await store.run() })
      await remote.wait(forCalls: call)
    }
    return (store, runs)
  }

  @Test("A run's failure does not bring back its value, which another run's value has hidden")
  func hiddenValue() async {
    let (store, runs) = await store(runs: 3)
    remote.yield([1], from: 0)
    remote.yield([2], from: 1)
    remote.yield(error: Failed(code: 3), from: 2)
    remote.yield(error: Failed(code: 4), from: 0)
    #expect(store.currentValue == [2])
    runs[2].cancel()
    await store.settles { $0.activeTasks.count == 2 }
    #expect(store.currentValue == [2] && store.error as? Failed == Failed(code: 4))
    runs[0].cancel()
    await store.settles { $0.activeTasks.count == 1 }
    #expect(store.currentValue == [2] && store.error == nil)
    store.cancel()
    #expect(store.currentValue == nil)
  }

  @Test("A confirmed edit stays on a yielded value when an earlier yield is undone")
  func confirmedEdit() async {
    let (store, runs) = await store(runs: 2)
    await store.optimistically({ $0 = ($0 ?? []) + [9] }) {}
    // This value has the edit, and those of the runs do not.
    store.currentValue = [1, 9]
    remote.yield([2], from: 0)
    remote.yield([3], from: 1)
    remote.yield(error: Failed(), from: 1)
    #expect(store.currentValue == [3, 9])
    runs[0].cancel()
    await store.settles { $0.activeTasks.count == 1 }
    #expect(store.currentValue == [3, 9] && store.error is Failed)
    store.cancel()
    #expect(store.currentValue == [1, 9] && store.error == nil)
  }

  @Test("The failure of a run stays when another run is cancelled that has yielded before")
  func finalFailure() async {
    let (store, runs) = await store(runs: 3)
    remote.yield([1], from: 0)
    remote.yield(error: Failed(code: 2), from: 1)
    remote.fail(Failed(code: 3), call: 2)
    _ = await runs[2].result
    runs[0].cancel()
    await store.settles { $0.activeTasks.count == 1 }
    #expect(store.currentValue == nil)
    #expect(store.error as? Failed == Failed(code: 3) && store.errorUpdateCount == 2)
    store.cancel()
    #expect(store.error as? Failed == Failed(code: 3) && store.errorUpdateCount == 1)
  }

  @Test("A failure that is set stays when a run is cancelled that has yielded before another one")
  func failureOverYields() async throws {
    let (store, runs) = await store(runs: 3)
    remote.yield([1], from: 0)
    remote.yield(error: Failed(code: 1), from: 1)
    store.setResult(to: .failure(Failed(code: 2)))
    runs[0].cancel()
    await store.settles { $0.activeTasks.count == 2 }
    #expect(store.currentValue == nil && store.valueUpdateCount == 0)
    #expect(store.error as? Failed == Failed(code: 2) && store.errorUpdateCount == 2)
    runs[1].cancel()
    await store.settles { $0.activeTasks.count == 1 }
    #expect(store.error as? Failed == Failed(code: 2) && store.errorUpdateCount == 1)
    remote.answer([3], to: 2)
    #expect(try await runs[2].value == [3])
    #expect(store.currentValue == [3] && store.error == nil && store.valueUpdateCount == 1)
  }

  @Test("A failure that is set between two yields is replaced by the later one")
  func failureBetweenYields() async throws {
    let (store, runs) = await store(runs: 2)
    remote.yield([1], from: 0)
    store.setResult(to: .failure(Failed(code: 2)))
    remote.yield(error: Failed(code: 1), from: 1)
    runs[0].cancel()
    await store.settles { $0.activeTasks.count == 1 }
    #expect(store.error as? Failed == Failed(code: 1) && store.errorUpdateCount == 2)
    runs[1].cancel()
    await store.settles { !$0.isLoading }
    #expect(store.error as? Failed == Failed(code: 2) && store.errorUpdateCount == 1)
    #expect(store.currentValue == nil && store.valueUpdateCount == 0)
  }

  @Test("A saved value that loads below two yields is not shown when the second is undone")
  func savedValueBelowYields() async {
    let held = HeldStorage(base: MemoryStorage(["values/remote": savedEntry("[7]")]))
    let store = savingClient(held)
      .store(for: remote.query().manual().deduplicated { _, _ in false }.persisted())
    await held.loads.wait(for: 1)
    var runs: [Task<[Int], any Error>] = []
    for call in 1...2 {
      runs.append(Task { try await store.run() })
      await remote.wait(forCalls: call)
      remote.yield([call], from: call - 1)
    }
    held.gate.open()
    for await state in store.states where !state.isRestoring { break }
    #expect(store.currentValue == [2])
    runs[1].cancel()
    await store.settles { $0.activeTasks.count == 1 }
    #expect(store.currentValue == [1])
    runs[0].cancel()
    await store.settles { $0.activeTasks.isEmpty }
    #expect(store.currentValue == [7])
  }

  @Test(
    "A saved value that loads beside a yielded failure is shown with it", arguments: [false, true])
  func savedValueBesideFailure(isCancelled: Bool) async {
    let held = HeldStorage(base: MemoryStorage(["values/remote": savedEntry("[7]")]))
    let store = savingClient(held).store(for: remote.query().manual().persisted())
    await held.loads.wait(for: 1)
    let run = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    remote.yield(error: Failed(code: 1))
    held.gate.open()
    for await state in store.states where !state.isRestoring { break }
    #expect(store.currentValue == [7] && store.error as? Failed == Failed(code: 1))
    if isCancelled { run.cancel() } else { remote.fail(Failed(code: 2)) }
    await store.settles { $0.activeTasks.isEmpty }
    #expect(store.currentValue == [7] && store.valueUpdateCount == 1)
    #expect(store.error as? Failed == (isCancelled ? nil : Failed(code: 2)))
  }
}
