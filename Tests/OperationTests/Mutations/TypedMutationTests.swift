import Operation
import Testing

private enum Declined: Error { case always }

private struct TypedMutation: MutationRequest, Hashable {
  func mutate(
    with arguments: Int, in context: OperationContext,
    with continuation: OperationContinuation<Int, Declined>
  ) async throws(Declined) -> Int {
    guard arguments > 0 else { throw .always }
    return arguments
  }
}

/// A mutation with its own failure type.
@Suite struct TypedMutationTests {
  @Test("A failure keeps its type from the mutation to the caller and the history")
  func typed() async {
    let store = OperationStore.detached(mutation: TypedMutation())
    do throws(Declined) {
      try await store.mutate(with: 0)
      Issue.record("nothing was thrown")
    } catch {
      #expect(error == .always)
    }
    #expect(store.error == .always)
    #expect(store.history.first?.currentResult == .failure(.always))
  }

  @Test("retryLatest throws noArguments if there are none, whatever the failure type")
  func retry() async throws {
    let store = OperationStore.detached(mutation: TypedMutation())
    await #expect(throws: MutationError.noArguments) { try await store.retryLatest() }
    try await store.mutate(with: 3)
    #expect(try await store.retryLatest() == 3)
  }

  @Test("A mutation of any error is scheduled without a throw, and fails if it was never called")
  func anyError() async throws {
    let store = OperationStore.detached(
      mutation: Mutation<Int, Int>(path: ["any"]) { arguments, _ in arguments })
    let task = store.runTask()
    await #expect(throws: MutationError.noArguments) { try await task.runIfNeeded() }
    try await store.mutate(with: 3)
    let again = store.runTask(using: OperationTaskConfiguration(name: "again"))
    #expect(try await again.runIfNeeded() == 3)
  }

  @Test("An automatic run takes the latest arguments, and does not start before the first call")
  func automatic() async throws {
    let clock = ManualClock()
    let client = OperationClient(defaults: .testing, clock: clock)
    let store = client.store(
      for: TypedMutation().enableAutomaticRunning().rerun(every: .seconds(1), inBackground: true))
    let causes = EventLog<OperationRun.Cause>()
    let subscription = store.subscribe {
      if case .runStarted(let run) = $0 { causes.append(run.cause) }
    }
    store.invalidate()
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(1))
    await clock.sleepers(atLeast: 1)
    #expect(causes.values.isEmpty && store.history.isEmpty)
    try await store.mutate(with: 2)
    store.invalidate()
    await store.settles { $0.history.count == 2 && !$0.isLoading }
    await clock.advance(by: .seconds(1))
    await store.settles { $0.history.count == 3 && !$0.isLoading }
    #expect(store.history.map(\.arguments) == [2, 2, 2])
    // Another thread may be delivering the last event.
    #expect(await eventually { causes.values.count == 3 })
    #expect(causes.values == [.fetch, .invalidation, .poll])
    subscription.cancel()
  }

  @Test("A mutation with a timeout has the failure any Error, and one store whatever its modifiers")
  func timeout() async throws {
    let client = OperationClient(defaults: .testing)
    let store = client.store(for: TypedMutation().timeout(after: .seconds(1)))
    #expect(try await store.mutate(with: 3) == 3)
    await #expect(throws: Declined.always) { try await store.mutate(with: 0) }
    await #expect(throws: MutationError.noArguments) {
      try await TypedMutation().timeout(after: .seconds(1)).run()
    }
    let other = TypedMutation().retry(limit: 1).timeout(after: .seconds(2))
    #expect(client.store(for: other) === store)
    #expect(try await other.run(with: 4) == 4)
  }

  @Test("A mapped mutation is a mutation with another value")
  func map() async throws {
    let store = OperationClient(defaults: .testing).store(for: TypedMutation().map { "\($0)" })
    #expect(try await store.mutate(with: 3) == "3")
    #expect(store.history.map(\.arguments) == [3])
    do throws(Declined) {
      try await store.mutate(with: 0)
      Issue.record("nothing was thrown")
    } catch {
      #expect(error == .always)
    }
  }

  @Test("Every way to run a mutation that was never called throws noArguments")
  func neverCalled() async throws {
    let client = OperationClient(defaults: .testing)
    let store = client.store(for: TypedMutation())
    await #expect(throws: MutationError.noArguments) { try await store.fetch() }
    await #expect(throws: MutationError.noArguments) { try await store.run() }
    await #expect(throws: MutationError.noArguments) {
      try await store.fetch(using: OperationTaskConfiguration(name: "again"))
    }
    await #expect(throws: MutationError.noArguments) { try await store.fetch(restarting: true) }
    #expect(throws: MutationError.noArguments) { try store.runTask() }
    #expect(throws: MutationError.noArguments) {
      try store.runTask(using: OperationTaskConfiguration(name: "again"))
    }
    await #expect(throws: MutationError.noArguments) { try await client.fetch(TypedMutation()) }
    await #expect(throws: MutationError.noArguments) { try await TypedMutation().run() }
    let opaque = try #require(client.store(with: store.path))
    await #expect(throws: MutationError.noArguments) { try await opaque.fetch() }
    await #expect(throws: MutationError.noArguments) { try await opaque.run() }
    await client.prefetch(TypedMutation())
    #expect(store.status.isIdle && store.history.isEmpty)
  }

  @Test("Every way to run a mutation that was called takes the arguments of the latest call")
  func calledBefore() async throws {
    let client = OperationClient(defaults: .testing)
    let store = client.store(for: TypedMutation())
    try await store.mutate(with: 3)
    #expect(try await store.fetch() == 3)
    #expect(try await store.run() == 3)
    #expect(try await store.fetch(using: OperationTaskConfiguration(name: "again")) == 3)
    #expect(try await store.fetch(restarting: true) == 3)
    #expect(try await store.runTask().runIfNeeded() == 3)
    let named = try store.runTask(using: OperationTaskConfiguration(name: "again"))
    #expect(try await named.runIfNeeded() == 3)
    #expect(try await client.fetch(TypedMutation()) == 3)
    #expect(try await client.store(with: store.path)?.fetch() as? Int == 3)
    #expect(store.history.map(\.arguments) == Array(repeating: 3, count: 9))
  }
}
