import Operation
import Testing

@Suite("deduplicated", .timeLimit(.minutes(5))) struct DeduplicationTests {
  /// A key whose values log that they are compared, which happens for a second caller.
  private struct Compared: Equatable, Sendable {
    let log: EventLog<Void>
    var number = 1

    static func == (lhs: Compared, rhs: Compared) -> Bool {
      lhs.log.append(())
      return lhs.number == rhs.number
    }
  }

  private enum ComparedKey: OperationContext.Key {
    static var defaultValue: Compared? { nil }
  }

  private let gate = AsyncGate()
  private let comparisons = EventLog<Void>()
  private let cancellations = EventLog<Void>()

  private func context(_ number: Int = 1) -> OperationContext {
    var context = OperationContext()
    context[ComparedKey.self] = Compared(log: comparisons, number: number)
    return context
  }

  /// A script that waits for the gate, and logs its cancellation.
  private func gated() -> Script {
    Script { [gate, cancellations] attempt, _, yield in
      await withTaskCancellationHandler {
        yield(.success(-1))
        await gate.wait()
        yield(.success(-2))
        return .success(attempt)
      } onCancel: {
        cancellations.append(())
        gate.open()
      }
    }
  }

  @Test("A task joins runs in the context that it was started with")
  func startedContext() async throws {
    enum Region: OperationContext.Key { static var defaultValue: String { "eu" } }
    let remote = Remote<Int>()
    let store = OperationClient(defaults: .testing).store(for: remote.query())
    var american = OperationContext()
    american[Region.self] = "us"
    var task = store.runTask()
    task.context[Region.self] = "us"
    let first = Task { [task] in try await task.runIfNeeded() }
    await remote.wait(forCalls: 1)
    let same = Task { [american] in try await store.run(using: american) }
    await store.settles { $0.leaseCount == 2 }
    let other = Task { try await store.run() }
    await remote.wait(forCalls: 2)
    remote.answer(1, to: 0)
    remote.answer(2, to: 1)
    #expect(try await [first.value, same.value, other.value] == [1, 1, 2])
  }

  @Test("Runs with copies of one context are equivalent, for any contents")
  func passedTwice() async throws {
    enum Action: OperationContext.Key {
      static var defaultValue: @Sendable () -> Void { {} }
    }
    let client = OperationClient(defaults: .testing, context: .number(1))
    let fetched = EventLog<Int>()
    let store = client.store(
      for: Paginated(path: ["pages"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 }) {
        [gate] paging, _ async throws -> Int in
        fetched.append(paging.pageId)
        if paging.pageId > 0 { await gate.wait() }
        return paging.pageId
      })
    try await store.fetchNextPage()
    var context = store.context
    context.fixtureNumber = 2
    context[Action.self] = {}
    let pages = (1...2).map { [context] _ in
      Task { try await store.fetchNextPage(using: context) }
    }
    await store.settles { $0.leaseCount == 2 }
    await fetched.wait(for: 2)
    gate.open()
    for page in pages { #expect(try await page.value?.id == 1) }
    #expect(fetched.values == [0, 1])
  }

  @Test("Copies of a request share one run without a store")
  func shared() async throws {
    let script = gated()
    let request = OpenQuery(script: script).deduplicated()
    let copy = request
    let first = Task { try await request.run(in: context()) }
    await script.contexts.wait(for: 1)
    let second = Task { try await copy.run(in: context()) }
    await comparisons.wait(for: 1)
    gate.open()
    #expect(try await [first.value, second.value] == [1, 1])
    #expect(script.attempts == 1)
    #expect(try await request.run(in: context()) == 2)
  }

  @Test("Runs in contexts that are not equivalent are not shared")
  func otherContexts() async throws {
    let script = gated()
    let request = PlainRequest(script: script).deduplicated()
    let first = Task { try await request.run(in: context(1)) }
    await script.contexts.wait(for: 1)
    let second = Task { try await request.run(in: context(2)) }
    await script.contexts.wait(for: 2)
    gate.open()
    #expect(try await Set([first.value, second.value]) == [1, 2])
  }

  @Test("Two deduplicated requests that are not copies share no run")
  func apart() async throws {
    let script = gated()
    let requests = [
      OpenQuery(script: script).deduplicated(), OpenQuery(script: script).deduplicated(),
    ]
    let runs = requests.map { request in Task { try await request.run(in: context()) } }
    await script.contexts.wait(for: 2)
    gate.open()
    for run in runs { _ = try await run.value }
  }

  @Test("Runs with the clock of the request are equivalent")
  func clock() async throws {
    let script = gated()
    let request = OpenQuery(script: script).clock(ManualClock()).deduplicated()
    let first = Task { try await request.run(in: context()) }
    await script.contexts.wait(for: 1)
    let second = Task { try await request.run(in: context()) }
    await comparisons.wait(for: 1)
    gate.open()
    #expect(try await [first.value, second.value] == [1, 1])
  }

  @Test("A predicate decides which runs are shared, and its first argument is the older context")
  func predicate() async throws {
    let script = gated()
    let compared = EventLog<[Int]>()
    let request = TypedQuery(script: script).deduplicated { old, new in
      compared.append([old.fixtureNumber, new.fixtureNumber])
      return old.fixtureNumber % 2 == new.fixtureNumber % 2
    }
    let first = Task { try await request.run(in: .number(1)) }
    await script.contexts.wait(for: 1)
    let second = Task { try await request.run(in: .number(2)) }
    await script.contexts.wait(for: 2)
    let executor = RestingExecutor()
    let third = Task(executorPreference: executor) { try await request.run(in: .number(3)) }
    await executor.rest()
    gate.open()
    #expect(try await [first.value, second.value, third.value] == [1, 2, 1])
    #expect(compared.values.prefix(2) == [[1, 2], [1, 3]])
    #expect(script.attempts == 2)
  }

  @Test("Every caller receives every yield until it returns")
  func yields() async throws {
    let script = gated()
    let request = OpenQuery(script: script).deduplicated()
    let (one, other) = (EventLog<Int>(), EventLog<Int>())
    func run(_ log: EventLog<Int>) -> Task<Int, any Error> {
      Task {
        try await request.run(
          in: context(), with: OperationContinuation { log.append((try? $0.get()) ?? 0) })
      }
    }
    let first = run(one)
    await one.wait(for: 1)
    let second = run(other)
    await comparisons.wait(for: 1)
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    gate.open()
    #expect(try await second.value == 1)
    #expect(one.values == [-1])
    #expect(other.values == [-2])
  }

  @Test("A cancelled caller returns at once, and the others get the value")
  func lease() async throws {
    let script = gated()
    let request = OpenQuery(script: script).deduplicated()
    let first = Task { try await request.run(in: context()) }
    await script.contexts.wait(for: 1)
    let second = Task { try await request.run(in: context()) }
    await comparisons.wait(for: 1)
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    #expect(cancellations.count == 0)
    gate.open()
    #expect(try await second.value == 1)
  }

  @Test("The run is cancelled with its last caller, and a new call starts a new run")
  func lastLease() async throws {
    let script = gated()
    let request = OpenQuery(script: script).deduplicated()
    let callers = (0..<2).map { _ in Task { try await request.run(in: context()) } }
    await script.contexts.wait(for: 1)
    await comparisons.wait(for: 1)
    for caller in callers { caller.cancel() }
    for caller in callers {
      await #expect(throws: CancellationError.self) { try await caller.value }
    }
    await cancellations.wait(for: 1)
    #expect(try await request.run(in: context()) == 2)
  }

  @Test("A cancelled caller with a typed failure gets the result of the run")
  func typedLease() async throws {
    let script = gated()
    let request = TypedQuery(script: script).deduplicated()
    let caller = Task { try await request.run(in: context()) }
    await script.contexts.wait(for: 1)
    caller.cancel()
    #expect(try await caller.value == 1)
    #expect(cancellations.count == 1)
  }

  @Test("Hundreds of callers, half of them cancelled, share one run", arguments: 0..<20)
  func many(round: Int) async throws {
    let (gate, executor) = (AsyncGate(), RestingExecutor())
    let script = Script { attempt, _, _ in
      await gate.wait()
      return .success(attempt)
    }
    let request = OpenQuery(script: script).deduplicated { _, _ in true }
    let callers = (0..<200).map { _ in
      Task(executorPreference: executor) { try await request.run() }
    }
    await executor.rest()
    for caller in callers.prefix(100) { caller.cancel() }
    for caller in callers.prefix(100) {
      await #expect(throws: CancellationError.self) { try await caller.value }
    }
    gate.open()
    for caller in callers.suffix(100) { #expect(try await caller.value == 1) }
    #expect(script.attempts == 1)
  }

  @Test("In a store the rule of the request replaces the client's")
  func store() async throws {
    var defaults = OperationDefaults.testing
    defaults.isDeduplicated = false
    let client = OperationClient(defaults: defaults)
    let script = gated()
    let store = client.store(for: OpenQuery(script: script).deduplicated())
    let first = Task { try await store.run() }
    await script.contexts.wait(for: 1)
    let second = Task { try await store.run() }
    while store.leaseCount < 2 { await Task.yield() }
    gate.open()
    #expect(try await [first.value, second.value] == [1, 1])
    #expect(script.attempts == 1)
  }

  @Test("A predicate decides in a store as well, with no lock held")
  func storePredicate() async throws {
    let script = gated()
    let stores = EventLog<OperationStore<QueryState<Int, Refused>>>()
    let store = OperationClient(defaults: .testing).store(
      for: TypedQuery(script: script).deduplicated { old, new in
        stores.values.first?.isLoading == true && old.fixtureNumber == new.fixtureNumber
      })
    stores.append(store)
    defer { stores.clear() }
    let runs = [7, 7, 8].map { number in Task { try await store.run(using: .number(number)) } }
    while store.leaseCount < 3 { await Task.yield() }
    await script.contexts.wait(for: 2)
    gate.open()
    for run in runs { _ = try await run.value }
    #expect(script.contexts.values.map(\.fixtureNumber).sorted() == [7, 8])
  }

  @Test(
    "Runs without a store join if their contexts have the same client", arguments: [true, false])
  func clients(isSame: Bool) async throws {
    let script = gated()
    let request = OpenQuery(script: script).deduplicated()
    let clients = [OperationClient(), OperationClient()]
    let contexts = [0, isSame ? 0 : 1].map { index in
      var context = OperationContext()
      context.operationClient = clients[index]
      return context
    }
    let first = Task { try await request.run(in: contexts[0]) }
    await script.contexts.wait(for: 1)
    let executor = RestingExecutor()
    let second = Task(executorPreference: executor) { try await request.run(in: contexts[1]) }
    await executor.rest()
    gate.open()
    #expect(try await first.value == 1)
    #expect(try await second.value == (isSame ? 1 : 2))
    withExtendedLifetime(clients) {}
  }

  @Test(
    "Of several deduplications the last one counts, also without a store", arguments: [true, false])
  func lastDeduplication(hasStore: Bool) async throws {
    let gate = AsyncGate()
    let script = Script { attempt, _, _ in
      await gate.wait()
      return .success(attempt)
    }
    let query = OpenQuery(script: script).deduplicated().retry(limit: 1)
      .deduplicated { _, _ in false }
    let store = OperationClient(defaults: .testing, clock: ManualClock()).store(for: query)
    let runs = (0..<2).map { _ in
      Task { if hasStore { try await store.fetch() } else { try await query.run() } }
    }
    await script.contexts.wait(for: 2)
    gate.open()
    for run in runs { _ = try await run.value }
    #expect(script.attempts == 2)
  }
}
