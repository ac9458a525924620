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

  @Test("Without a cached value, the failure is thrown") func noValue() async {
    let request = OpenQuery(script: Script(failures: 9)).staleIfError(for: .seconds(60))
    let client = client()
    await #expect(throws: Refused.self) { try await client.fetch(request) }
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
}
