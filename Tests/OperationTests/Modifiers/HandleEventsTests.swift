import Operation
import Synchronization
import Testing

@Suite("handleEvents") struct HandleEventsTests {
  /// Events as lines that can be compared.
  private func line<State>(_ event: OperationEvent<State>) -> String
  where State.OperationValue == Int {
    switch event {
    case .stateChanged: "state"
    case .runStarted(let run): "started \(run.context.operationRetryIndex)"
    case .yielded(.success(let value), _): "yielded \(value)"
    case .yielded(.failure(let error), _): "yielded \(error)"
    case .runEnded(.success(let value), _): "ended \(value)"
    case .runEnded(.failure, _): "failed"
    }
  }

  private func script(failures: Int = 0) -> Script {
    Script { attempt, _, yield in
      yield(.success(attempt * 10))
      return attempt <= failures ? .failure(Refused(attempt: attempt)) : .success(attempt)
    }
  }

  @Test("A handler receives the start, the yields and the end, without a store", arguments: 0..<3)
  func withoutStore(kind: Int) async throws {
    let log = EventLog<String>()
    switch kind {
    case 0: _ = try await OpenQuery(script: script()).handleEvents { log.append(line($0)) }.run()
    case 1: _ = try await TypedQuery(script: script()).handleEvents { log.append(line($0)) }.run()
    default:
      _ = try await PlainRequest(script: script()).handleEvents { log.append(line($0)) }.run()
    }
    #expect(log.values == ["started 0", "yielded 10", "ended 1"])
  }

  @Test("A handler receives a failure, and the run throws it")
  func failure() async {
    let log = EventLog<String>()
    let errors = EventLog<Refused>()
    let request = TypedQuery(script: script(failures: 9)).handleEvents { event in
      log.append(line(event))
      if case .runEnded(.failure(let error), _) = event { errors.append(error) }
    }
    await #expect(throws: Refused(attempt: 1)) { try await request.run() }
    #expect(log.values == ["started 0", "yielded 10", "failed"])
    #expect(errors.values == [Refused(attempt: 1)])
  }

  @Test("Below a retry a handler receives each attempt, and above it the whole run")
  func retry() async throws {
    let (below, above) = (EventLog<String>(), EventLog<String>())
    _ = try await OpenQuery(script: script(failures: 1))
      .handleEvents { below.append(line($0)) }
      .retry(limit: 1).backoff(.noBackoff)
      .handleEvents { above.append(line($0)) }
      .run()
    #expect(
      below.values == [
        "started 0", "yielded 10", "failed", "started 1", "yielded 20", "ended 2",
      ])
    #expect(above.values == ["started 0", "yielded 10", "yielded 20", "ended 2"])
  }

  @Test("All events of one run contain that run")
  func run() async throws {
    let runs = EventLog<OperationTaskID?>()
    let request = OpenQuery(script: script()).handleEvents { runs.append($0.run?.id) }
    let store = OperationClient(defaults: .testing).store(for: request)
    let task = store.runTask()
    try await task.runIfNeeded()
    #expect(runs.values == [task.id, task.id, task.id])
    _ = try await request.run()
    #expect(Set(runs.values.suffix(3)).count == 1)
    #expect(runs.values.last != task.id)
  }

  @Test("In a store the handler is called before the state has the result, and may use the store")
  func store() async throws {
    let stores = EventLog<OperationStore<QueryState<Int, Refused>>>()
    let seen = EventLog<Int?>()
    let request = TypedQuery(script: script()).handleEvents { _ in
      if let store = stores.values.first {
        seen.append(store.currentValue)
        store.context.fixtureNumber += 1
      }
    }
    let store = OperationClient(defaults: .testing).store(for: request)
    stores.append(store)
    defer { stores.clear() }
    _ = try await store.run()
    #expect(seen.values == [nil, nil, 10])
    #expect(store.context.fixtureNumber == 3)
  }

  @Test("A yield after the end is no event") func lateYield() async throws {
    let log = EventLog<String>()
    let kept = Mutex<OperationContinuation<Int, any Error>?>(nil)
    let request = Query<Int, any Error>(path: ["late"]) { _, continuation in
      kept.withLock { $0 = continuation }
      return 1
    }.handleEvents { log.append(line($0)) }
    #expect(try await request.run() == 1)
    kept.withLock { $0.take() }?.yield(2)
    #expect(log.values == ["started 0", "ended 1"])
  }

  @Test("The continuation of a run without a store receives what is yielded")
  func continuation() async throws {
    let log = EventLog<Int>()
    let continuation = OperationContinuation<Int, Refused> { log.append((try? $0.get()) ?? -1) }
    _ = try await TypedQuery(script: script()).run(with: continuation)
    #expect(log.values == [10])
  }
}
