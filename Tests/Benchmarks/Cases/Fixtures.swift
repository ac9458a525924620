import FoundationEssentials
import Operation
import Synchronization

/// A query that gives a constant, on a path that was made before.
struct Item: QueryRequest {
  let path: OperationPath

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int {
    1
  }
}

/// What a store is at the least: a value and a date behind a lock.
final class Box: Sendable {
  let state = Mutex<(value: Int?, date: Date?)>((nil, nil))

  func write(_ value: Int) {
    state.withLock { $0 = (value, Date()) }
  }
}

/// Keeps the optimiser from leaving out what nobody looks at.
enum Sink {
  private static let last = Atomic<Int>(0)

  static func take(_ value: Int) { last.store(value, ordering: .relaxed) }
  static func take(_ object: AnyObject?) { take(object == nil ? 0 : 1) }
  static func take(_ value: Int?) { take(value ?? 0) }
}

/// Waits until something has happened so many times.
final class Countdown: Sendable {
  private let state = Mutex<(left: Int, waiter: UnsafeContinuation<Void, Never>?)>((0, nil))

  func set(_ count: Int) { state.withLock { $0.left = count } }

  func hit() {
    let waiter = state.withLock { state -> UnsafeContinuation<Void, Never>? in
      state.left -= 1
      return state.left == 0 ? state.waiter.take() : nil
    }
    waiter?.resume()
  }

  func wait() async {
    await withUnsafeContinuation { continuation in
      let isOver = state.withLock { state in
        if state.left > 0 { state.waiter = continuation }
        return state.left <= 0
      }
      if isOver { continuation.resume() }
    }
  }
}

enum Fixtures {
  /// So many paths, ten in a group, made anew with each call.
  static func paths(_ count: Int, group: Int = 10) -> [OperationPath] {
    (0..<count).map { ["items", $0 / group, $0] }
  }

  static func items(_ count: Int, group: Int = 10) -> [Item] {
    paths(count, group: group).map(Item.init)
  }

  /// A client with standard defaults and a store on each path.
  static func client(_ items: [Item]) -> OperationClient {
    let client = OperationClient()
    for item in items { _ = client.store(for: item) }
    return client
  }

  /// A store with standard defaults and a value, which does not run by itself.
  static func store() -> (OperationClient, OperationStore<QueryState<Int, any Error>>) {
    let client = OperationClient()
    let store = client.store(for: Item(path: ["item"]).neverStale())
    store.currentValue = 1
    return (client, store)
  }

  /// The run of a query with standard defaults: the floor of what runs more than that.
  static func fetch() -> Work {
    let client = OperationClient()
    let store = client.store(for: Item(path: ["floor"]))
    return .loop(keeping: client) { _ in Sink.take(try await store.fetch()) }
  }
}
