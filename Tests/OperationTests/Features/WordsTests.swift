import Operation
import Testing

@Suite struct WordsTests {
  private let clock = ManualClock()
  private let script = Script()

  private func client() -> OperationClient { OperationClient(defaults: .testing, clock: clock) }

  @Test("A manual request runs only for calls") func manual() async throws {
    let client = client()
    let store = client.store(for: OpenQuery(script: script).manual())
    let subscription = store.subscribe { _ in }
    store.invalidate()
    #expect(!store.isLoading)
    #expect(try await store.fetch() == 1)
    store.invalidate()
    #expect(!store.isLoading)
    #expect(script.attempts == 1)
    subscription.cancel()
  }

  @Test("Conditions are combined with leading dots") func conditions() {
    let request = OpenQuery(script: script)
      .rerunOnChange(of: .connected && .foreground)
      .enableAutomaticRunning(onlyWhen: !.never || .connected)
    #expect(client().store(for: request).path == ["open"])
  }

  @Test("Runs that no caller requested have the name and the priority of the modifier")
  func automaticRuns() async throws {
    let seen = EventLog<(name: String?, priority: TaskPriority)>()
    let request = Query(path: ["named"]) { _ in
      seen.append((Task.name, Task.currentPriority))
      return 1
    }.automaticRuns(named: "background work", priority: .background)
    let client = client()
    let store = client.store(for: request)
    let subscription = store.subscribe { _ in }
    await seen.wait(for: 1)
    #expect(seen.values.first?.name == "background work")
    #expect(seen.values.first?.priority == .background)
    subscription.cancel()
  }

  @Test("A fetch returns the cached value in place of a failure while it is not too old")
  func staleIfError() async throws {
    let script = Script { attempt, _, _ in
      attempt == 1 ? .success(7) : .failure(Refused(attempt: attempt))
    }
    let client = client()
    let request = OpenQuery(script: script).staleIfError(for: .seconds(60))
    #expect(try await client.fetch(request) == 7)
    await clock.advance(by: .seconds(59))
    #expect(try await client.fetch(request) == 7)
    #expect(client.store(for: request).error as? Refused == Refused(attempt: 2))
    client.invalidate(request)
    #expect(try await client.ensure(request) == 7)
    await clock.advance(by: .seconds(1))
    await #expect(throws: Refused.self) { try await client.fetch(request) }
  }

  @Test("ensure fetches once after an invalidation, also if it returns the cached value then")
  func staleIfErrorOnce() async throws {
    let script = Script { attempt, _, _ in
      attempt == 1 ? .success(7) : .failure(Refused(attempt: attempt))
    }
    let client = client()
    let request = OpenQuery(script: script).staleIfError(for: .seconds(60))
    try await client.fetch(request)
    client.invalidate(request)
    #expect(try await client.ensure(request) == 7)
    #expect(script.attempts == 2)
  }

  @Test("A reader of a cached value in place of a failure runs again when there is a new value")
  func staleIfErrorReader() async throws {
    let script = Script { attempt, _, _ in
      attempt == 2 ? .failure(Refused(attempt: attempt)) : .success(attempt)
    }
    let client = client()
    let request = OpenQuery(script: script).neverStale().staleIfError(for: .seconds(60))
    let mapped = request.map { $0 + 10 }
    let reader = Query(path: ["reader"]) { try await $0.ensure(request) }.neverStale()
    let stores = (client.store(for: reader), client.store(for: mapped))
    #expect(try await client.fetch(reader) == 1)
    client.invalidate(request)
    #expect(try await client.ensure(reader) == 1)
    #expect(!stores.0.isStale)
    #expect(try await client.fetch(request) == 3)
    #expect(stores.0.isStale)
    #expect(try await client.ensure(reader) == 3)
    #expect(try await client.ensure(mapped) == 13)
  }

  @Test("A reader gets the fetched value of a store that a handler of the end has reset")
  func staleIfErrorReset() async throws {
    let client = OperationClient(
      defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false))
    let request = OpenQuery(script: Script()).staleIfError(for: .seconds(60))
    let store = client.store(for: request)
    let subscription = store.subscribe { event in
      if case .runEnded = event { store.resetState() }
    }
    let reader = Query(path: ["reader"]) { try await $0.ensure(request) }
    #expect(try await client.fetch(reader) == 1)
    #expect(store.currentValue == nil)
    subscription.cancel()
  }

  @Test("A reader of a map of such a value runs again, too") func staleIfErrorMapReader()
    async throws
  {
    let script = Script { attempt, _, _ in
      attempt == 2 ? .failure(Refused(attempt: attempt)) : .success(attempt)
    }
    let client = client()
    let request = OpenQuery(script: script).neverStale().staleIfError(for: .seconds(60))
    let mapped = request.map { $0 + 10 }
    let reader = Query(path: ["reader"]) { try await $0.ensure(mapped) }.neverStale()
    let store = client.store(for: reader)
    #expect(try await client.fetch(reader) == 11)
    client.invalidate(request)
    #expect(try await client.ensure(reader) == 11)
    #expect(!store.isStale)
    #expect(try await client.fetch(request) == 3)
    #expect(store.isStale)
  }

  @Test("Without a cached value, the failure is thrown") func noValue() async {
    let request = OpenQuery(script: Script(failures: 9)).staleIfError(for: .seconds(60))
    let client = client()
    await #expect(throws: Refused.self) { try await client.fetch(request) }
  }

  @Test("A value that is an optional can be missing") func optionalValue() async throws {
    let request = Query<Int?, any Error>(path: ["optional"]) { _ in throw Refused() }
      .neverStale().staleIfError(for: .seconds(60))
    let store = client().store(for: request, initialValue: .some(.some(5)))
    store.currentValue = .none
    #expect(store.isStale)
    await #expect(throws: Refused.self) { try await store.fetch() }
    store.currentValue = .some(.none)
    #expect(!store.isStale)
    #expect(try await store.fetch() == nil)
  }

  @Test("A negative age is reported, and zero is used") func badAge() async throws {
    let script = Script { attempt, _, _ in attempt == 1 ? .success(1) : .failure(Refused()) }
    let (issues, request) = await issues {
      OpenQuery(script: script).staleIfError(for: .seconds(-1))
    }
    #expect(issues.map(\.kind) == [.invalidValue])
    let client = client()
    #expect(try await client.fetch(request) == 1)
    await #expect(throws: Refused.self) { try await client.fetch(request) }
  }

  @Test("A mutation that fails throws, and returns no earlier value")
  func staleIfErrorMutation() async throws {
    let desk = MutationDesk()
    let client = client()
    let store = client.store(
      for: Call(desk: desk, path: ["call"]).staleIfError(for: .seconds(60)))
    try await store.mutate(with: "a")
    desk.refuse("b")
    await #expect(throws: MutationDesk.Refused.self) { try await store.mutate(with: "b") }
  }

  @Test("A cancelled fetch throws the cancellation, and returns no cached value")
  func staleIfErrorCancelled() async throws {
    let gate = AsyncGate()
    let script = Script { attempt, _, _ in
      if attempt == 2 { await gate.wait() }
      return .success(attempt)
    }
    let client = client()
    let store = client.store(for: OpenQuery(script: script).staleIfError(for: .seconds(60)))
    try await store.fetch()
    let second = Task { try await store.fetch() }
    await script.contexts.wait(for: 2)
    second.cancel()
    await #expect(throws: CancellationError.self) { try await second.value }
    gate.open()
  }
}
