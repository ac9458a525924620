import Foundation
import ReactiveStreams
import Synchronization
import Testing

@testable import Operation

/// A query that counts its calls, and whose failure cannot be a cancellation.
private struct CountedQuery: QueryRequest {
  struct Failure: Error {}
  let calls: Monitor<Int>
  var path: OperationPath { ["typed"] }
  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Int, Failure>
  ) async throws(Failure) -> Int {
    calls.update {
      $0 += 1
      return $0
    }
  }
}

@Suite(.timeLimit(.minutes(5))) struct AfterShutdownTests {
  private func rounds(_ limit: Int = 3_000, until isDone: () -> Bool) async {
    var count = 0
    while !isDone(), count < limit {
      await Task.yield()
      count += 1
    }
  }

  @Test("After a shutdown, nothing calls a request by itself", arguments: 0..<4)
  func automaticAfterShutdown(kind: Int) async throws {
    let clock = ManualClock()
    let client = OperationClient(defaults: .testing, clock: clock)
    let calls = Monitor(0)
    let query = CountedQuery(calls: calls)
    let condition = Broadcast<Bool>()
    let store =
      switch kind {
      case 0: client.store(for: query.rerun(every: .seconds(1), inBackground: true))
      case 1: client.store(for: query.rerunOnChange(of: .latest(of: condition)))
      default: client.store(for: query)
      }
    var subscriptions: [OperationSubscription] = []
    if kind < 3 { subscriptions.append(store.subscribe { _ in }) }
    await clock.settle()
    let before = calls.value
    _ = await client.shutdown(within: .zero)
    switch kind {
    case 0: for _ in 0..<3 { await clock.advance(by: .seconds(1)) }
    case 1: condition.send(true)
    case 2: store.invalidate()
    default: subscriptions.append(store.subscribe { _ in })
    }
    await clock.settle()
    #expect(calls.value == before)
    subscriptions.forEach { $0.cancel() }
  }

  @Test("After a shutdown, nothing fetches in the background", arguments: [false, true])
  func backgroundAfterShutdown(isEnsured: Bool) async throws {
    let clock = ManualClock()
    let client = OperationClient(defaults: .testing, clock: clock)
    let calls = Monitor(0)
    let query = CountedQuery(calls: calls).stale(after: .seconds(1))
    let store = client.store(for: query)
    store.currentValue = 7
    await clock.advance(by: .seconds(2))
    _ = await client.shutdown(within: .zero)
    if isEnsured {
      #expect(try await client.ensure(query, whileStale: .revalidates) == 7)
    } else {
      client.invalidate(matching: [], running: .all)
    }
    for _ in 0..<2_000 { await Task.yield() }
    await clock.settle()
    #expect(calls.value == 0)
  }

  private struct TypedQuery: QueryRequest {
    struct Failure: Error {}
    let arrived: Monitor<[Bool]>
    let gate: AsyncGate
    var path: OperationPath { ["typed"] }
    func fetch(
      in context: OperationContext, with continuation: OperationContinuation<Int, Failure>
    ) async throws(Failure) -> Int {
      arrived.update { $0.append(Task.isCancelled) }
      await gate.wait()
      throw Failure()
    }
  }

  @Test(
    "A request that is called after a shutdown is called in a cancelled task, also in exclusive access"
  )
  func typedAfterShutdown() async throws {
    let client = OperationClient(defaults: .testing)
    let (arrived, gate) = (Monitor<[Bool]>([]), AsyncGate())
    let store = client.store(for: TypedQuery(arrived: arrived, gate: gate).manual())
    let latch = ThreadLatch()
    let isHolding = Monitor(false)
    let subscription = store.subscribe { _ in if isHolding.value { latch.wait() } }
    _ = await client.shutdown(within: .zero)
    let run = Monitor<Task<Int, any Error>?>(nil)
    await onThreads(1) { _ in
      isHolding.update { $0 = true }
      Thread.detachNewThread {
        store.withExclusiveAccess {
          run.update { $0 = Task.immediate { try await store.fetch() } }
        }
      }
    }
    await rounds(20_000) { !arrived.value.isEmpty }
    #expect(arrived.value != [false])
    isHolding.update { $0 = false }
    for _ in 0..<20 { latch.open() }
    gate.open()
    #expect(await eventually { !arrived.value.isEmpty })
    #expect(arrived.value == [true])
    _ = await run.value?.result
    subscription.cancel()
  }
}
