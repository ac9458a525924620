import Foundation
import Operation
import Testing

/// Requests with faults. Each ends in a state that reports the fault, and affects nothing else.
@Suite("Faults: requests", .timeLimit(.minutes(5))) struct RequestFaultTests {
  private let place = Neighbourhood()

  @Test("The late answer of a request that ignores cancellation is dropped, and the value stays")
  func ignoresCancellation() async throws {
    let remote = Remote<Int>(ignoresCancellation: true)
    let store = place.client.store(for: remote.query())
    store.currentValue = 1
    let awaiter = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    store.cancel()
    await #expect(throws: CancellationError.self) { try await awaiter.value }
    #expect(store.status.isSuccess)
    #expect(!store.isLoading)
    let next = Task { try await store.run() }
    await remote.wait(forCalls: 2)
    remote.answer(3, to: 1)
    #expect(try await next.value == 3)
    let reported = await issues {
      remote.yield(8, from: 0)
      remote.answer(9, to: 0)
      await remote.waitForEnd(of: 0)
    }
    #expect(reported.issues.isEmpty, "a late yield of a cancelled run is not reported")
    #expect(store.currentValue == 3)
    #expect(store.valueUpdateCount == 2)
    #expect(store.errorUpdateCount == 0)
    await place.expectPeace(in: store)
  }

  @Test("The value that a request yields before it throws stays, and the failure is displayed")
  func throwsAfterYield() async {
    let store = place.client.store(
      for: Query<Int, any Error>(path: ["faulty"]) { _, continuation in
        continuation.yield(1)
        continuation.yield(error: Failed(code: 1))
        continuation.yield(2)
        throw Failed(code: 2)
      })
    let log = Recorder<OperationEvent<QueryState<Int, any Error>>>()
    await #expect(throws: Failed(code: 2)) { try await store.run { log.append($0) } }
    #expect(store.currentValue == 2)
    #expect(store.error as? Failed == Failed(code: 2))
    #expect(store.status.isFailure)
    #expect(store.valueUpdateCount == 2)
    #expect(store.errorUpdateCount == 2)
    #expect(log.names().last == "ended Failed(code: 2)")
    #expect(place.client.activity.queries.failed == 1)
    await place.expectPeace(in: store)
  }

  @Test("Each value that a request yields from other threads is stored once, in one order")
  func yieldsFromThreads() async throws {
    let store = place.client.store(
      for: Query<Int, any Error>(path: ["faulty"]) { _, continuation in
        await onThreads(4) { thread in
          for number in 0..<250 { continuation.yield(1_000 * thread + number) }
        }
        return -1
      })
    let log = Recorder<OperationEvent<QueryState<Int, any Error>>>()
    #expect(try await store.run { log.append($0) } == -1)
    let yielded = log.all.compactMap { event -> Int? in
      if case .yielded(let result, _) = event { try? result.get() } else { nil }
    }
    #expect(yielded.count == 1_000)
    for thread in 0..<4 {
      #expect(yielded.filter { $0 / 1_000 == thread } == (0..<250).map { 1_000 * thread + $0 })
    }
    #expect(store.currentValue == -1)
    #expect(store.valueUpdateCount == 1_001)
    await place.expectPeace(in: store)
  }

  @Test("A yield from another thread after the end of a request is reported, and changes nothing")
  func yieldsLate() async throws {
    let remote = Remote<Int>()
    let store = place.client.store(for: remote.query(["late", 1]))
    let run = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    remote.answer(1)
    #expect(try await run.value == 1)
    let log = Recorder<OperationIssue>()
    await onThreads(1) { _ in
      OperationIssue.withHandler({ log.append($0) }) {
        remote.yield(2)
        remote.yield(error: Failed())
      }
    }
    #expect(log.all.map(\.kind) == [.lateYield, .lateYield])
    #expect(log.all.first?.message.contains("[\"late\", 1]") == true)
    #expect(store.currentValue == 1)
    #expect(store.valueUpdateCount == 1)
    #expect(store.error == nil)
    await place.expectPeace(in: store)
  }

  @Test("A request that never returns loads until it is cancelled, and then a new one runs")
  func neverReturns() async throws {
    let remote = Remote<Int>(ignoresCancellation: true)
    let store = place.client.store(for: remote.query())
    let awaiters = (0..<3).map { _ in Task { try await store.run() } }
    await store.settles { $0.leaseCount == 3 }
    await remote.wait(forCalls: 1)
    await place.clock.advance(by: .seconds(1_000_000))
    #expect(store.status.isLoading)
    #expect(place.client.store(with: ["remote"]) != nil, "a store that loads is not evicted")
    store.resetState()
    for awaiter in awaiters {
      await #expect(throws: CancellationError.self) { try await awaiter.value }
    }
    #expect(store.status.isIdle)
    let next = Task { try await store.run() }
    await remote.wait(forCalls: 2)
    remote.answer(2, to: 1)
    #expect(try await next.value == 2)
    await place.expectPeace(in: store)
    remote.answer(0, to: 0)
  }

  @Test("A request that never returns ends with the failure of its timeout")
  func neverReturnsInTime() async throws {
    let remote = Remote<Int>(ignoresCancellation: true)
    let store = place.client.store(for: remote.query().timeout(after: .seconds(5)))
    let run = Task { try await store.run() }
    await place.clock.sleepers(atLeast: 1)
    await place.clock.advance(by: .seconds(5))
    await #expect(throws: OperationTimeoutError.self) { try await run.value }
    #expect(store.error is OperationTimeoutError)
    #expect(store.status.isFailure)
    await place.expectPeace(in: store)
    remote.answer(0, to: 0)
  }

  @Test("When a decoder fails halfway, the state has its error, and the value stays")
  func decoder() async throws {
    struct Player: Codable, Equatable, Sendable {
      var name: String
      var score: Int
    }
    let answers = Recorder<String>()
    answers.append(#"[{"name": "Blob", "score": 1}]"#)
    let store = place.client.store(
      for: Query<[Player], any Error>(path: ["players"]) { _, _ in
        try JSONDecoder().decode([Player].self, from: Data((answers.all.last ?? "").utf8))
      })
    let first = try await store.run()
    for text in [
      #"[{"name": "Blob", "score": 2}, {"name": "Blob", "score": "x"}]"#,
      #"[{"name": "Blob", "score": 2}, {"name": "Bl"#, #"[{"name": "Blob", "score": 2.5}]"#, "",
    ] {
      answers.append(text)
      await #expect(throws: DecodingError.self) { try await store.run() }
      #expect(store.error is DecodingError)
      #expect(store.status.isFailure)
      #expect(store.currentValue == first, "no part of an incomplete answer is displayed")
    }
    #expect(store.valueUpdateCount == 1)
    #expect(store.errorUpdateCount == 4)
    answers.append(#"[{"name": "Blob, Jr.", "score": 3}]"#)
    #expect(try await store.run().map(\.score) == [3])
    #expect(store.error == nil)
    await place.expectPeace(in: store)
  }
}
