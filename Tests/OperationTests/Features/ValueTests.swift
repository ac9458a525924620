import Operation
import Testing

private struct Name: Hashable, Sendable { var text: String }

private struct Wrapped: Error, Hashable { var attempt: Int? }

@Suite("Elements of a path") struct PathElementTests {
  @Test("An element can be made of any value, and returns it with its type")
  func values() {
    let path = OperationPath(["a", 1, Name(text: "x"), 1.5])
    #expect(path[0].value(as: String.self) == "a")
    #expect(path[1].value(as: Int.self) == 1)
    #expect(path[2].value(as: Name.self) == Name(text: "x"))
    #expect(path[3].value(as: Double.self) == 1.5)
    #expect(OperationPath.Element("a") == path[0] && OperationPath.Element(2) != path[1])
    #expect(Set(path).contains(OperationPath.Element(1.5)))
  }

  @Test("An element returns no value of another type")
  func otherTypes() {
    #expect(OperationPath.Element(1).value(as: Int8.self) == nil)
    #expect(OperationPath.Element(1).value(as: Double.self) == nil)
    #expect(OperationPath.Element(1).value(as: Int?.self) == nil)
    let optional: Int? = 1
    #expect(OperationPath.Element(optional).value(as: Int.self) == nil)
    #expect(OperationPath.Element(optional).value(as: Int?.self) == .some(1))
    #expect(OperationPath.Element(Int?.none).value(as: Int?.self) == .some(nil))
  }

  @Test("Values are patterns of a switch")
  func patterns() {
    func kind(of path: OperationPath) -> String {
      switch path.first {
      case "posts"?: "posts"
      case 1?: "one"
      case Name(text: "x")?: "name"
      default: "other"
      }
    }
    #expect(kind(of: ["posts", 1]) == "posts")
    #expect(kind(of: [1]) == "one")
    #expect(kind(of: [1.0]) == "other")
    #expect(kind(of: [Name(text: "x")]) == "name")
    #expect(kind(of: [Name(text: "y")]) == "other")
    #expect(kind(of: []) == "other")
  }
}

@Suite("Maps of results", .timeLimit(.minutes(5))) struct ResultMapTests {
  @Test("A status maps the value of a success only, and throws what the closure throws")
  func status() throws {
    typealias Status = OperationStatus<Int, Refused>
    let others: [Status] = [.idle, .loading, .paused, .result(.failure(Refused(attempt: 2)))]
    for status in others {
      #expect(status.map(String.init).description == status.description)
      _ = try status.map { _ in throw Wrapped() }
    }
    #expect(Status.result(.success(1)).map { "\($0)" } == .result(.success("1")))
    #expect(throws: Wrapped(attempt: 1)) {
      try Status.result(.success(1)).map { throw Wrapped(attempt: $0) }
    }
  }

  @Test("A task maps its failure, and does not change a value")
  func task() async {
    let script = Script { attempt, _, _ in
      attempt == 1 ? .failure(Refused(attempt: 1)) : .success(attempt)
    }
    let store = OperationStore.detached(query: TypedQuery(script: script))
    let failing = store.runTask().mapError { Wrapped(attempt: $0.attempt) }
    #expect(failing.finishedResult == nil)
    await #expect(throws: Wrapped(attempt: 1)) { try await failing.runIfNeeded() }
    #expect(failing.finishedResult == .failure(Wrapped(attempt: 1)))
    let succeeding = store.runTask().map { $0 * 10 }.mapError { Wrapped(attempt: $0.attempt) }
    #expect(await succeeding.result == .success(20))
  }

  @Test("A scheduled run is removed with the last copy of a mapped task")
  func lifetime() {
    let store = OperationStore.detached(query: TypedQuery(script: Script()))
    var task: OperationTask<Int, Wrapped>? = store.runTask().mapError { _ in Wrapped() }
    #expect(store.isLoading && task?.hasStarted == false)
    task = nil
    #expect(!store.isLoading)
  }

  @Test("A cancelled run is mapped, and a cancelled caller returns at once with any error")
  func cancelled() async {
    let gate = AsyncGate()
    let script = Script { attempt, _, _ in
      await gate.wait()
      return .success(attempt)
    }
    let store = OperationStore.detached(query: OpenQuery(script: script))
    let typed = store.runTask().mapError { Wrapped(attempt: $0 is CancellationError ? 0 : 1) }
    let caller = Task { await typed.result }
    await script.contexts.wait(for: 1)
    typed.cancel()
    #expect(await caller.value == .failure(Wrapped(attempt: 0)))
    let untyped = store.runTask().mapError { $0 as any Error }
    let cancelled = Task { try await untyped.runIfNeeded() }
    await script.contexts.wait(for: 2)
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    gate.open()
  }

  @Test("The cancellation of the only caller is not mapped, before the start and in the run")
  func onlyCaller() async {
    let gate = AsyncGate()
    let script = Script { attempt, _, _ in
      await gate.wait()
      return .success(attempt)
    }
    let store = OperationStore.detached(query: OpenQuery(script: script))
    let running = store.runTask().mapError { _ -> any Error in Wrapped() }
    let caller = Task { try await running.runIfNeeded() }
    await script.contexts.wait(for: 1)
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
    let scheduled = store.runTask().mapError { _ -> any Error in Wrapped() }
    let late = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await scheduled.runIfNeeded()
    }
    await #expect(throws: CancellationError.self) { try await late.value }
    // A caller that is not cancelled itself gets the transformed cancellation.
    await #expect(throws: Wrapped.self) { try await scheduled.runIfNeeded() }
    gate.open()
  }
}

extension OperationTask {
  fileprivate var result: Result<Value, Failure> {
    get async {
      do throws(Failure) { return .success(try await runIfNeeded()) } catch {
        return .failure(error)
      }
    }
  }
}

@Suite("Normal memory pressure", .timeLimit(.minutes(5))) struct NormalPressureTests {
  @Test("Normal pressure is the lowest, and the raw values of the others are unchanged")
  func levels() {
    let levels: [MemoryPressure] = [.normal, .warning, .critical]
    #expect(levels.sorted() == levels && levels.map(\.rawValue) == [-1, 0, 1])
  }

  @Test("A source notifies of normal pressure, which evicts no store")
  func source() {
    let source = ManualMemoryPressureSource()
    let client = OperationClient(
      defaults: OperationDefaults(memoryPressureSource: source), clock: ManualClock())
    let log = EventLog<MemoryPressure>()
    let subscription = source.subscribe { log.append($0) }
    let eviction = client.evictWhen(pressure: .warning)
    _ = client.store(for: TypedQuery(script: Script()))
    source.send(.normal)
    #expect(log.values == [.normal] && client.stores(matching: []).count == 1)
    for pressure in [MemoryPressure.warning, .critical] {
      source.send(pressure)
      #expect(client.stores(matching: []).count == 0)
      _ = client.store(for: TypedQuery(script: Script()))
    }
    withExtendedLifetime((subscription, eviction)) {}
  }
}
