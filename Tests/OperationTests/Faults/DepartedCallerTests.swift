import Dispatch
import Foundation
import Testing

@testable import Operation

/// What is left of callers that do not wait for the end of their run.
@Suite(.timeLimit(.minutes(5))) struct DepartedCallerTests {
  private let client = OperationClient(defaults: .testing, clock: ManualClock())
  private let begun = EventLog<Int>()
  private let gate = AsyncGate()
  private let released = EventLog<Int>()
  private let continuations = Monitor<[OperationContinuation<Int, any Error>]>([])

  private var query: Query<Int, any Error> {
    Query(path: ["query"]) { [begun, gate, continuations] _, continuation in
      continuations.update { $0 = [continuation] }
      begun.append(1)
      await gate.wait()
      continuations.update { $0 = [] }
      return 1
    }
  }

  @Test(
    "The handler of a cancelled caller is released, and called no more, while the run continues")
  func handler() async throws {
    let store = client.store(for: query)
    let calls = EventLog<Int>()
    let first = Task { try await store.run() }
    await begun.wait(for: 1)
    let second = Task { [released] in
      let sentinel = Sentinel { released.append(1) }
      _ = try await store.run { _ in calls.append(sentinel.number) }
    }
    while store.leaseCount < 2 { await Task.yield() }
    second.cancel()
    await #expect(throws: CancellationError.self) { try await second.value }
    await released.wait(for: 1)
    let count = calls.count
    continuations.value.first?.yield(5)
    #expect(store.currentValue == 5 && calls.count == count)
    gate.open()
    #expect(try await first.value == 1)
  }

  @Test(
    "The continuation of a cancelled caller of a shared run is released while the run continues")
  func continuation() async throws {
    let request = query.deduplicated()
    let first = Task { try await request.run() }
    await begun.wait(for: 1)
    let joined = EventLog<Int>()
    let second = Task { [released] in
      let sentinel = Sentinel { released.append(1) }
      _ = try await request.run(
        with: OperationContinuation { _ in joined.append(sentinel.number) })
    }
    while joined.count == 0 {
      continuations.value.first?.yield(5)
      await Task.yield()
    }
    second.cancel()
    await #expect(throws: CancellationError.self) { try await second.value }
    await released.wait(for: 1)
    gate.open()
    #expect(try await first.value == 1)
  }

  @Test("A yield after the end of a run without a store is reported, and dropped")
  func lateYield() async throws {
    let kept = Monitor<OperationContinuation<Int, any Error>?>(nil)
    let values = EventLog<Int>()
    let query = Query<Int, any Error>(path: ["late"]) { _, continuation in
      kept.update { $0 = continuation }
      continuation.yield(1)
      return 2
    }
    let (found, _) = try await issues {
      _ = try await query.run(
        with: OperationContinuation { if case .success(let value) = $0 { values.append(value) } })
      kept.value?.yield(3)
    }
    #expect(values.values == [1])
    #expect(found.map(\.kind) == [.lateYield] && found.first?.message.contains("late") == true)
  }

  @Test(
    "A request that keeps its continuations is released after its runs",
    arguments: [
      "plain", "deduplicated", "retry", "timeout", "delay", "events", "map", "throwing map",
      "store", "store of a map",
    ])
  func keptContinuations(kind: String) async throws {
    func run() async throws {
      let kept = Monitor<[OperationContinuation<Int, any Error>]>([])
      let sentinel = Sentinel { [released] in released.append(1) }
      let query = Query<Int, any Error>(path: ["kept"]) { _, continuation in
        kept.update { $0.append(continuation) }
        continuation.yield(1)
        return sentinel.number
      }
      switch kind {
      case "plain": try await query.run()
      case "deduplicated": try await query.deduplicated().run()
      case "retry": try await query.retry(limit: 2).run()
      case "timeout": try await query.timeout(after: .seconds(1)).run()
      case "delay": try await query.delay(for: .zero).run()
      case "events": try await query.handleEvents { _ in }.run()
      case "map": try await query.map { $0 + 1 }.run()
      case "throwing map":
        try await query.map { try Result<Int, any Error>.success($0).get() }.run()
      case "store": try await OperationClient(defaults: .testing).fetch(query)
      default: try await OperationClient(defaults: .testing).fetch(query.map { $0 + 1 })
      }
    }
    try await run()
    #expect(await eventually { released.count == 1 })
  }

  /// A value whose hash calls the test.
  private struct Hashed: Hashable, Sendable {
    let onHash: @Sendable () -> Void

    static func == (lhs: Self, rhs: Self) -> Bool { true }
    func hash(into hasher: inout Hasher) { onHash() }
  }

  private enum HashedKey: OperationContext.Key { static var defaultValue: Hashed? { nil } }

  @Test("Values of a context that is set on a task are not hashed under the lock of the store")
  func hash() async throws {
    let store = client.store(for: query)
    let blocked = EventLog<Int>()
    let hashed = Hashed {
      let done = DispatchSemaphore(value: 0)
      Thread.detachNewThread {
        _ = store.leaseCount
        done.signal()
      }
      if done.wait(timeout: .now() + 5) == .timedOut { blocked.append(1) }
    }
    var task = store.runTask()
    task.context[HashedKey.self] = hashed
    let first = Task { [task] in try await task.runIfNeeded() }
    await begun.wait(for: 1)
    var context = OperationContext()
    context[HashedKey.self] = hashed
    let second = Task { [context] in try await store.run(using: context) }
    while store.leaseCount < 2 { await Task.yield() }
    gate.open()
    _ = try await (first.value, second.value)
    #expect(blocked.count == 0)
  }
}
