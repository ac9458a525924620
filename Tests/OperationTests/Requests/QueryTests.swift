import Operation
import Testing

@Suite("Query") struct QueryTests {
  @Test("A query is created from a closure with a context, a continuation, or a typed failure")
  func forms() async throws {
    let plain = Query(path: ["plain"]) { context in context.fixtureNumber }
    let yielding = Query(path: ["yielding"]) { _, continuation in
      continuation.yield(1)
      return 2
    }
    let typed = Query(path: ["typed"], failure: Refused.self) { _ throws(Refused) -> Int in
      throw Refused(attempt: 4)
    }
    let both = Query(path: ["both"], failure: Refused.self) {
      _, continuation throws(Refused) -> Int in
      continuation.yield(error: Refused(attempt: 5))
      return 6
    }
    #expect(try await plain.run(in: .number(3)) == 3)
    #expect(try await yielding.run() == 2)
    await #expect(throws: Refused(attempt: 4)) { try await typed.run() }
    let yields = EventLog<Result<Int, Refused>>()
    #expect(try await both.run(with: OperationContinuation { yields.append($0) }) == 6)
    #expect(yields.values == [.failure(Refused(attempt: 5))])
  }

  @Test("A query that cannot fail needs no try")
  func never() async {
    let query = Query(path: ["never"], failure: Never.self) { _ in 3 }
    #expect(await query.run() == 3)
    let store = OperationClient(defaults: .testing).store(for: query)
    #expect(await store.run() == 3)
    #expect(store.status == .result(.success(3)))
  }

  @Test("Two queries on one path with the same value type share a store")
  func samePath() {
    let client = OperationClient(defaults: .testing)
    let store = client.store(for: Query(path: ["a", 1]) { _ in 1 })
    #expect(client.store(for: Query(path: ["a", 1]) { _ in 2 }) === store)
    #expect(client.store(for: Query(path: ["a", 2]) { _ in 1 }) !== store)
  }

  @Test("A store displays what a query yields until its end")
  func yields() async throws {
    let gate = AsyncGate()
    let yielded = EventLog<Void>()
    let store = OperationClient(defaults: .testing).store(
      for: Query(path: ["yields"]) { _, continuation in
        continuation.yield(with: .success(1))
        yielded.append(())
        await gate.wait()
        return 2
      })
    let run = Task { try await store.run() }
    await yielded.wait(for: 1)
    #expect(store.currentValue == 1 && store.isLoading)
    gate.open()
    #expect(try await run.value == 2)
    #expect(store.currentValue == 2 && !store.isLoading)
  }

  @Test("A yield after the end of a run in a store is reported and dropped")
  func lateYield() async throws {
    let kept = EventLog<OperationContinuation<Int, any Error>>()
    let store = OperationClient(defaults: .testing).store(
      for: Query(path: ["late"]) { _, continuation in
        kept.append(continuation)
        return 1
      })
    _ = try await store.run()
    let reported = await issues { kept.values[0].yield(7) }
    #expect(reported.issues.map(\.kind) == [.lateYield])
    #expect(reported.issues.first?.message.contains("\"late\"") == true)
    #expect(store.currentValue == 1)
  }
}
