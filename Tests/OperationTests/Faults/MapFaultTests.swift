import Foundation
import ReactiveStreams
import Synchronization
import Testing

@testable import Operation

@Suite(.timeLimit(.minutes(5))) struct MapFaultTests {
  private func rounds(_ limit: Int = 3_000, until isDone: () -> Bool) async {
    var count = 0
    while !isDone(), count < limit {
      await Task.yield()
      count += 1
    }
  }

  @Test(
    "A map of a query whose value is stale at once does not fetch without an end", arguments: 0..<3)
  func mapOfStale(kind: Int) async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let calls = Monitor(0)
    let base = Query<Int, any Error>(path: ["numbers"]) { _ in
      calls.update {
        $0 += 1
        return $0
      }
    }
    let subscription: OperationSubscription
    switch kind {
    case 0:
      subscription = client.store(for: base.stale(after: .zero).map { 2 * $0 }).subscribe { _ in }
    case 1:
      subscription = client.store(for: base.staleWhen { _, _ in true }.map { 2 * $0 }).subscribe {
        _ in
      }
    default:
      subscription = client.store(for: base.map { 2 * $0 }).subscribe { _ in }
    }
    await rounds { calls.value > 50 }
    subscription.cancel()
    #expect(calls.value < 5)
  }

  @Test("A chain of maps of a query whose value is stale at once does not fetch without an end")
  func mapsOfMaps() async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let calls = Monitor(0)
    let base = Query<Int, any Error>(path: ["numbers"]) { _ in
      calls.update {
        $0 += 1
        return $0
      }
    }
    let mapped = client.store(for: base.stale(after: .zero).map { 2 * $0 }.map { "\($0)" })
    let subscription = mapped.subscribe { _ in }
    var count = 0
    while calls.value < 50, count < 3_000 {
      await Task.yield()
      count += 1
    }
    #expect(calls.value < 5)
    let before = calls.value
    client.invalidate(base)
    #expect(await eventually { calls.value > before })
    count = 0
    while calls.value < 50, count < 3_000 {
      await Task.yield()
      count += 1
    }
    #expect(calls.value <= before + 2)
    #expect(await eventually { mapped.currentValue == "\(2 * calls.value)" })
    subscription.cancel()
  }

  @Test("A reset of a query whose map is observed starts no run")
  func resetOfMapped() async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let calls = Monitor(0)
    let base = Query<Int, any Error>(path: ["numbers"]) { _ in
      calls.update {
        $0 += 1
        return $0
      }
    }
    let mapped = client.store(for: base.map { 2 * $0 })
    let subscription = mapped.subscribe { _ in }
    #expect(await eventually { mapped.currentValue == 2 && !mapped.isLoading })
    let before = calls.value
    client.reset(base)
    await rounds { calls.value > before }
    #expect(mapped.isStale)
    subscription.cancel()
    #expect(calls.value == before)
  }
}
