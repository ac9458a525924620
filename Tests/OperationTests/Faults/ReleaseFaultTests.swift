import Dispatch
import Foundation
import Operation
import Synchronization
import Testing

/// What a deinitialiser finds locked.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ReleaseFaultTests {
  /// Whether another thread can read a store at this moment.
  static func canRead(_ read: @escaping @Sendable () -> Void) -> Bool {
    let done = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      read()
      done.signal()
    }
    return done.wait(timeout: .now() + .seconds(2)) == .success
  }

  final class Tracked: Sendable {
    let onDeinit: @Sendable () -> Void
    init(_ onDeinit: @escaping @Sendable () -> Void) { self.onDeinit = onDeinit }
    deinit { onDeinit() }
  }

  /// A key whose instances are told apart by what they do at their end.
  final class EndingKey: Hashable, Sendable {
    let number: Int
    let onEnd: @Sendable () -> Void
    init(_ number: Int, _ onEnd: @escaping @Sendable () -> Void = {}) {
      self.number = number
      self.onEnd = onEnd
    }
    deinit { onEnd() }
    static func == (lhs: EndingKey, rhs: EndingKey) -> Bool { lhs.number == rhs.number }
    func hash(into hasher: inout Hasher) { hasher.combine(number) }
  }

  @Test(
    "A page that a confirmed edit replaces is released without the lock", arguments: [true, false])
  func editedPage(succeeds: Bool) async throws {
    let gate = AsyncGate()
    let calls = Counter()
    let action = Mutex<(@Sendable () -> Void)?>(nil)
    let released = Monitor<[Bool]>([])
    let make: @Sendable () -> Tracked = {
      Tracked { action.withLock { $0 }?() }
    }
    let store = OperationClient(defaults: .quiet()).store(
      for: Paginated<Int, Tracked>(
        path: ["suspect-a"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 }
      ) { _, _ in
        calls.increment()
        if calls.value > 1 { await gate.wait() }
        return make()
      })
    try await store.fetchNextPage()
    let run = Task { try await store.fetchAllPages() }
    await Settled.when { calls.value == 2 }
    let edit: @Sendable (inout PaginatedPages<Int, Tracked>) -> Void = { pages in
      pages[id: 0] = PaginatedPage(id: 0, value: make())
    }
    await store.optimistically(edit) {}
    action.withLock {
      $0 = {
        let isFree = Self.canRead { _ = store.currentValue.count }
        released.update { $0.append(isFree) }
      }
    }
    if succeeds {
      await store.optimistically(edit) {}
    } else {
      await #expect(throws: Failed.self) {
        try await store.optimistically(edit) { () async throws(Failed) -> Void in throw Failed() }
      }
    }
    let all = released.value
    action.withLock { $0 = nil }
    gate.open()
    _ = try await run.value
    #expect(!all.contains(false), "\(all)")
  }

  @Test("A key of a batch is released without the lock of the loader")
  func batchKey() async throws {
    let clock = ManualClock()
    let context = OperationContext.timed(by: clock)
    let loader = BatchLoader<EndingKey, Int>(delay: .seconds(1), maxSize: 100) { keys in
      Dictionary(uniqueKeysWithValues: keys.map { ($0, $0.number) })
    }
    let other = Task { try await loader.load(EndingKey(9), in: context) }
    await clock.sleepers(atLeast: 1)
    let results = Monitor<[Bool]>([])
    func load(_ key: @escaping @Sendable () -> EndingKey) -> Task<Int, any Error> {
      Task { try await loader.load(key(), in: context) }
    }
    let first = load {
      EndingKey(1) {
        // The cancellation takes the lock of the loader.
        let isFree = Self.canRead { other.cancel() }
        results.update { $0.append(isFree) }
      }
    }
    for _ in 0..<1_000 { await Task.yield() }
    let second = load { EndingKey(1) }
    for _ in 0..<1_000 { await Task.yield() }
    first.cancel()
    _ = await first.result
    second.cancel()
    _ = await second.result
    await results.wait { !$0.isEmpty }
    #expect(results.value == [true])
    _ = await other.result
  }

  @Test("A page of an edit is released without the lock when an earlier edit is confirmed")
  func editedPageOfEarlierEdit() async throws {
    let action = Mutex<(@Sendable () -> Void)?>(nil)
    let released = Monitor<[Bool]>([])
    let make: @Sendable () -> Tracked = { Tracked { action.withLock { $0 }?() } }
    let store = OperationClient(defaults: .quiet()).store(
      for: Paginated<Int, Tracked>(
        path: ["tracked"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 }
      ) { _, _ in make() })
    try await store.fetchNextPage()
    let gates = [AsyncGate(), AsyncGate()]
    let begun = Counter()
    let edits = gates.map { gate in
      Task {
        await store.optimistically {
          $0[id: 0] = PaginatedPage(id: 0, value: make())
        } while: {
          begun.increment()
          await gate.wait()
        }
      }
    }
    await Settled.when { begun.value == 2 }
    gates[1].open()
    await edits[1].value
    action.withLock {
      $0 = {
        let isFree = Self.canRead { _ = store.currentValue.count }
        released.update { $0.append(isFree) }
      }
    }
    gates[0].open()
    await edits[0].value
    let all = released.value
    action.withLock { $0 = nil }
    #expect(!all.contains(false), "\(all)")
  }
}
