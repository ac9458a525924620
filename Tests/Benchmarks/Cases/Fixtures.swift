import FoundationEssentials
import Operation
import Synchronization

/// A query that returns a constant, with a path that was created before.
struct Item: QueryRequest {
  let path: OperationPath

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int {
    1
  }
}

/// The smallest form of a store: a value and a date behind a lock.
final class LockedValue: Sendable {
  let state = Mutex<(value: Int?, date: Date?)>((nil, nil))

  func write(_ value: Int) {
    state.withLock { $0 = (value, Date()) }
  }
}

/// A value behind a lock in an object of about 660 bytes, the size of a store.
final class LargeLockedValue: Sendable {
  private let state = Mutex<(value: Int?, date: Date?)>((nil, nil))
  private let rest = InlineArray<76, Int>(repeating: 0)

  func write(_ value: Int) {
    state.withLock { $0 = (value, Date()) }
  }
}

private let lastResult = Atomic<Int>(0)

/// Uses a result, so that the optimiser does not remove the code that computes it.
func blackHole(_ value: Int) { lastResult.store(value, ordering: .relaxed) }
func blackHole(_ object: AnyObject?) { blackHole(object == nil ? 0 : 1) }
func blackHole(_ value: Int?) { blackHole(value ?? 0) }

/// A number that threads count down, and a task that waits for zero.
final class Countdown: Sendable {
  private let state: Mutex<(left: Int, waiter: UnsafeContinuation<Void, Never>?)>

  init(_ count: Int = 0) {
    state = Mutex((count, nil))
  }

  func set(_ count: Int) { state.withLock { $0.left = count } }

  func countDown() {
    let waiter = state.withLock { state -> UnsafeContinuation<Void, Never>? in
      state.left -= 1
      return state.left == 0 ? state.waiter.take() : nil
    }
    waiter?.resume()
  }

  func wait() async {
    await withUnsafeContinuation { continuation in
      let isZero = state.withLock { state in
        if state.left > 0 { state.waiter = continuation }
        return state.left <= 0
      }
      if isZero { continuation.resume() }
    }
  }
}

enum Fixtures {
  /// Creates a number of new paths, which share the prefix of their group.
  static func paths(_ count: Int, group: Int = 10) -> [OperationPath] {
    (0..<count).map { ["items", $0 / group, $0] }
  }

  static func items(_ count: Int, group: Int = 10) -> [Item] {
    paths(count, group: group).map(Item.init)
  }

  /// Creates a client with standard defaults and a store for each item.
  static func client(_ items: [Item]) -> OperationClient {
    let client = OperationClient()
    for item in items { _ = client.store(for: item) }
    return client
  }

  /// Creates a store with standard defaults and a value, which does not run automatically.
  static func store() -> (OperationClient, OperationStore<QueryState<Int, any Error>>) {
    let client = OperationClient()
    let store = client.store(for: Item(path: ["item"]).neverStale())
    store.currentValue = 1
    return (client, store)
  }

  /// Returns runs of a query with standard defaults, the floor of mutations and pages.
  static func fetch() -> Work {
    let client = OperationClient()
    let store = client.store(for: Item(path: ["floor"]))
    return .loop(keeping: client) { _ in blackHole(try await store.fetch()) }
  }
}
