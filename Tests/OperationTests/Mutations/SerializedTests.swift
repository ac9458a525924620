import Operation
import Testing

/// Calls that run one after the other.
@Suite struct SerializedTests {
  private let desk = MutationDesk()
  private let client = OperationClient(defaults: .testing)

  private func store(_ path: String, in scope: some Hashable & Sendable) -> CallStore {
    client.store(for: Call(desk: desk, path: [path]).serialized(in: scope))
  }

  /// Starts a call, and waits until it is in the history of its store.
  private func call(_ name: String, _ store: CallStore) async -> Task<String, any Error> {
    let count = store.history.count
    let task = Task { try await store.mutate(with: name) }
    await Settled.when { store.history.count == count + 1 }
    return task
  }

  @Test("Calls of one scope run in the order in which they were called, whatever their store")
  func order() async throws {
    for round in 0..<200 {
      let desk = MutationDesk()
      let client = OperationClient(defaults: .testing)
      let stores = ["x", "y", "z"].map {
        client.store(for: Call(desk: desk, path: [$0]).serialized(in: "scope"))
      }
      desk.close()
      var calls: [Task<String, any Error>] = []
      for index in 0..<12 {
        let store = stores[(index + round) % 3]
        let count = store.leaseCount
        calls.append(Task { try await store.mutate(with: "\(index)") })
        await Settled.when { store.leaseCount == count + 1 }
      }
      desk.open()
      for (index, call) in calls.enumerated() {
        #expect(try await call.value == "done \(index)")
      }
      #expect(desk.begun == (0..<12).map(String.init) && desk.ended == desk.begun)
    }
  }

  @Test("A call that has waited for another one takes its turn behind the calls of its scope")
  func turnAfterOther() async throws {
    desk.close()
    let first = await call("a", store("x", in: "scope"))
    await desk.waiting("a")
    let (later, other) = (store("y", in: "scope"), store("z", in: "other"))
    let (task, before) = (later.mutateTask(with: "b"), other.mutateTask(with: "c"))
    task.schedule(after: before)
    let second = Task { try await task.runIfNeeded() }
    await desk.waiting("a", "c")
    desk.answer("c")
    try await before.runIfNeeded()
    for _ in 0..<1_000 { await Task.yield() }
    #expect(desk.begun == ["a", "c"])
    desk.open()
    _ = try await (first.value, second.value)
    #expect(desk.begun == ["a", "c", "b"])
  }

  @Test("A call has its entry in the history while it waits")
  func entryWhileWaiting() async throws {
    let store = store("x", in: 1)
    desk.close()
    let first = await call("a", store)
    let second = await call("b", store)
    await desk.waiting("a")
    // It is in the history before it is started.
    await Settled.when { store.history[1].task.hasStarted }
    #expect(store.lines == ["a …", "b …"])
    desk.answer("a")
    #expect(try await first.value == "done a")
    await desk.waiting("b")
    #expect(store.lines == ["a: done a", "b …"])
    desk.open()
    #expect(try await second.value == "done b")
  }

  @Test("Calls of different scopes run concurrently, also of equal scopes with different types")
  func sideBySide() async throws {
    let stores = [
      store("x", in: 1), store("y", in: 2), store("z", in: "1"), store("w", in: UInt8(1)),
    ]
    desk.close()
    var calls: [Task<String, any Error>] = []
    for (index, store) in stores.enumerated() { calls.append(await call("\(index)", store)) }
    await desk.waiting("0", "1", "2", "3")
    desk.open()
    for call in calls { _ = try await call.value }
  }

  @Test("A scope belongs to one client")
  func otherClient() async throws {
    let other = OperationClient(defaults: .testing)
      .store(for: Call(desk: desk, path: ["x"]).serialized(in: 1))
    desk.close()
    let first = await call("a", store("x", in: 1))
    let second = await call("b", other)
    await desk.waiting("a", "b")
    desk.open()
    _ = try await (first.value, second.value)
  }

  @Test("A call with the context of another client is in the queue of its own client")
  func contextOfAnotherClient() async throws {
    let store = store("x", in: 1)
    let context = OperationClient().store(for: Call(desk: desk)).context
    desk.close()
    let first = await call("a", store)
    await desk.waiting("a")
    let second = Task { try await store.mutate(with: "b", using: context) }
    await Settled.when { store.history.count == 2 }
    let third = await call("c", store)
    desk.answer("a")
    _ = try await first.value
    await desk.waiting("b")
    desk.open()
    _ = try await (second.value, third.value)
    #expect(desk.begun == ["a", "b", "c"])
  }

  @Test("A failed call does not block the next one")
  func failed() async throws {
    let store = store("x", in: 1)
    desk.refuse("a")
    desk.close()
    let first = await call("a", store)
    let second = await call("b", store)
    desk.open()
    await #expect(throws: MutationDesk.Refused(name: "a")) { try await first.value }
    #expect(try await second.value == "done b")
    #expect(store.lines == ["a failed", "b: done b"])
  }

  @Test("A cancelled call remains the current one until it has ended, and then the next one runs")
  func cancelled() async throws {
    let store = store("x", in: 1)
    desk.close()
    let first = await call("a", store)
    await desk.waiting("a")
    let second = await call("b", store)
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    #expect(store.lines == ["b …"] && desk.begun == ["a"])
    desk.open()
    #expect(try await second.value == "done b")
    #expect(desk.ended == ["a", "b"])
  }

  @Test("A call that is cancelled while it waits never runs, and the others keep their order")
  func cancelledWhileWaiting() async throws {
    let store = store("x", in: 1)
    desk.close()
    let first = await call("a", store)
    await desk.waiting("a")
    let second = await call("b", store)
    let third = await call("c", store)
    second.cancel()
    await #expect(throws: CancellationError.self) { try await second.value }
    #expect(store.lines == ["a …", "c …"] && desk.begun == ["a"])
    desk.open()
    #expect(try await first.value == "done a")
    #expect(try await third.value == "done c")
    #expect(desk.begun == ["a", "c"] && store.lines == ["a: done a", "c: done c"])
  }

  @Test("After a reset the queue continues with later calls")
  func reset() async throws {
    let store = store("x", in: 1)
    desk.close()
    let first = await call("a", store)
    await desk.waiting("a")
    let second = await call("b", store)
    store.resetState()
    for call in [first, second] {
      await #expect(throws: CancellationError.self) { try await call.value }
    }
    let third = await call("c", store)
    #expect(desk.begun == ["a"])
    desk.open()
    #expect(try await third.value == "done c")
    #expect(desk.begun == ["a", "c"])
  }

  @Test("A call that is scheduled after a later one of its scope does not block that one")
  func scheduledAfterALaterOne() async throws {
    let store = store("x", in: 1)
    let first = store.mutateTask(with: "a")
    let second = store.mutateTask(with: "b")
    first.schedule(after: second)
    #expect(try await first.runIfNeeded() == "done a")
    #expect(desk.begun == ["b", "a"])
  }

  @Test("A call that joins another one is not queued")
  func deduplicated() async throws {
    let store = client.store(for: Call(desk: desk).deduplicated().serialized(in: 1))
    desk.close()
    let first = await call("a", store)
    await desk.waiting("a")
    let joined = Task { try await store.mutate(with: "a") }
    await Settled.when { store.leaseCount == 2 }
    let next = await call("b", store)
    desk.open()
    #expect(try await first.value == "done a")
    #expect(try await joined.value == "done a")
    #expect(try await next.value == "done b")
    #expect(desk.begun == ["a", "b"])
  }

  @Test("A store without a client has its own scopes")
  func detached() async throws {
    let stores = [0, 1].map { _ in
      CallStore.detached(
        operation: Call(desk: desk).serialized(in: 1), initialState: MutationState())
    }
    desk.close()
    let first = await call("a", stores[0])
    let second = await call("b", stores[0])
    let other = await call("c", stores[1])
    await desk.waiting("a", "c")
    desk.open()
    _ = try await (first.value, second.value, other.value)
    #expect(desk.begun.last == "b")
  }

  @Test("Calls from many tasks run one at a time, each once")
  func storm() async throws {
    let store = store("x", in: 1)
    let names = (0..<300).map(String.init)
    await withTaskGroup(of: Void.self) { group in
      for name in names {
        group.addTask {
          let task = Task { try await store.mutate(with: name) }
          if name.hasSuffix("7") { task.cancel() }
          _ = try? await task.value
        }
      }
    }
    try await store.mutate(with: "last")
    #expect(desk.begun == desk.ended && desk.begun.last == "last")
    #expect(Set(desk.begun).count == desk.begun.count)
    #expect(Set(desk.begun).isSuperset(of: names.filter { !$0.hasSuffix("7") }))
    #expect(!store.isLoading)
  }

  @Test("A call that a handler of its start cancels does not block the next one")
  func cancelledAtItsStart() async throws {
    let store = store("x", in: 1)
    let subscription = store.subscribe { [weak store] event in
      if case .runStarted = event { store?.cancel() }
    }
    await #expect(throws: CancellationError.self) { try await store.mutate(with: "a") }
    subscription.cancel()
    #expect(try await store.mutate(with: "b") == "done b")
  }

  @Test("A cancelled call is removed from the queue at once, and released while the first one runs")
  func cancelledIsReleased() async throws {
    let desk = MutationDesk()
    let store = OperationClient(defaults: .testing).store(
      for: Call(desk: desk).serialized(in: "desk"))
    desk.close()
    let first = Task { try await store.mutate(with: "a") }
    await desk.waiting("a")
    weak var kept: Sentinel?
    func cancelSecond() async {
      let sentinel = Sentinel {}
      kept = sentinel
      var context = OperationContext()
      context[Held.self] = sentinel
      let second = Task { [context] in try await store.mutate(with: "b", using: context) }
      await Settled.when { store.history.count == 2 }
      second.cancel()
      _ = await second.result
    }
    await cancelSecond()
    await Settled.when { kept == nil }
    let third = Task { try await store.mutate(with: "c") }
    await Settled.when { store.history.count == 2 }
    #expect(desk.begun == ["a"])
    desk.open()
    _ = try await (first.value, third.value)
    #expect(desk.begun == ["a", "c"])
  }

  private enum Held: OperationContext.Key {
    static var defaultValue: Sentinel? { nil }
  }
}
