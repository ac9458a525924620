import Dispatch
import Observation
import SharingOperation
import Synchronization

/// A query whose value is its number, twice.
struct NumberQuery: QueryRequest, Hashable {
  let number: Int

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<[Int], any Error>
  ) async throws -> [Int] {
    [number, number]
  }
}

/// A value that is not `Equatable`.
struct Opaque: Sendable {
  let number: Int
}

struct Refusal: Error, Equatable {
  let reason: String
}

extension Query where Value == Opaque, Failure == any Error {
  static func opaque(_ number: Int) -> Query {
    Query(path: ["opaque", number]) { _ in Opaque(number: number) }
  }
}

extension Query where Value == Int, Failure == Refusal {
  static func refused(_ name: String) -> Query {
    Query(path: ["refused", name], failure: Refusal.self) { _ throws(Refusal) in
      throw Refusal(reason: name)
    }
  }
}

extension OperationClient {
  /// A client with a manual clock whose stores do not run automatically.
  static func quiet(clock: ManualClock = ManualClock()) -> OperationClient {
    OperationClient(
      defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false), clock: clock)
  }

  /// A client with a manual clock whose stores run automatically.
  static func eager(clock: ManualClock = ManualClock()) -> OperationClient {
    OperationClient(defaults: .testing, clock: clock)
  }
}

/// Counts calls from any thread.
final class Counter: Sendable {
  private let value = Atomic(0)

  var count: Int { value.load(ordering: .acquiring) }

  @discardableResult
  func increment() -> Int { value.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue }
}

/// Observes the members that `read` reads. The counter is one after a notification.
func track(_ read: () -> Void) -> Counter {
  let notified = Counter()
  withObservationTracking(read) { notified.increment() }
  return notified
}

/// A gate that suspends tasks until it is opened. It stays open.
final class Door: Sendable {
  private struct State {
    var isOpen = false
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  func open() {
    let waiters = state.withLock { state in
      state.isOpen = true
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  func passed() async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        if !state.isOpen { state.waiters.append(continuation) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }
}

/// A list to which any thread appends.
final class Log<Element: Sendable>: Sendable {
  private let list = Mutex<[Element]>([])

  var elements: [Element] { list.withLock { $0 } }

  func append(_ element: Element) { list.withLock { $0.append(element) } }

  /// Removes all elements, and releases them without the lock.
  func removeAll() {
    let removed = list.withLock { list in
      defer { list = [] }
      return list
    }
    withExtendedLifetime(removed) {}
  }
}

/// Calls `body` in `count` concurrent tasks, and waits for all of them.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) async {
  await withTaskGroup(of: Void.self) { group in
    for index in 0..<count { group.addTask { body(index) } }
  }
}

/// A gate that blocks one thread until another opens it.
final class DispatchGate: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  func wait() { semaphore.wait() }
  func open() { semaphore.signal() }
}

/// A query of a number, which waits for its gate, if it has one.
struct DetailQuery: SimpleQueryRequest {
  let id: Int
  var gate: CancellableGate?
  var failure: Refusal?

  var path: OperationPath { ["detail", id] }

  func fetch(in context: OperationContext) async throws -> String {
    await gate?.wait()
    if let failure { throw failure }
    return "detail \(id)"
  }
}

/// A gate that suspends tasks until it is opened. A task that is cancelled does not wait.
final class CancellableGate: Sendable {
  private let broadcast = Broadcast<Void>()
  private let isOpen = Mutex(false)

  func wait() async {
    var iterator = broadcast.values.makeAsyncIterator()
    if isOpen.withLock({ $0 }) { return }
    _ = await iterator.next()
  }

  func open() {
    isOpen.withLock { $0 = true }
    broadcast.finish()
  }
}
