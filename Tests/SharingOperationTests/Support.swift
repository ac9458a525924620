import Dispatch
import Observation
import SharingOperation
import Synchronization

/// A query whose value is made of its number.
struct NumberQuery: QueryRequest, Hashable {
  let number: Int

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<[Int], any Error>
  ) async throws -> [Int] {
    [number, number]
  }
}

/// A value that cannot be compared.
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
  /// A client whose stores run when they are told to, and at a clock that stands still.
  static func quiet(clock: ManualClock = ManualClock()) -> OperationClient {
    OperationClient(
      defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false), clock: clock)
  }

  /// A client whose stores run by themselves.
  static func eager(clock: ManualClock = ManualClock()) -> OperationClient {
    OperationClient(defaults: .testing, clock: clock)
  }
}

/// Counts, from any thread.
final class Counter: Sendable {
  private let value = Atomic(0)

  var count: Int { value.load(ordering: .acquiring) }

  @discardableResult
  func increment() -> Int { value.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue }
}

/// Reads under observation; the counter is one when a change was told.
func track(_ read: () -> Void) -> Counter {
  let told = Counter()
  withObservationTracking(read) { told.increment() }
  return told
}

/// A door that is opened once; whoever comes later goes straight through.
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

/// A list that any thread adds to.
final class Log<Element: Sendable>: Sendable {
  private let list = Mutex<[Element]>([])

  var elements: [Element] { list.withLock { $0 } }

  func append(_ element: Element) { list.withLock { $0.append(element) } }
}

/// Does a thing on several threads at once, and waits for all of them.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) async {
  await withTaskGroup(of: Void.self) { group in
    for index in 0..<count { group.addTask { body(index) } }
  }
}

/// Holds a thread until another one lets it go on.
final class DispatchGate: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  func wait() { semaphore.wait() }
  func open() { semaphore.signal() }
}
