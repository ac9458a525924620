import Dispatch
import Foundation
import Operation
import Synchronization
import Testing

/// The failure of the requests of these tests.
struct Failed: Error, Equatable {
  var code = 0
}

/// A value that several threads change, and whose changes tasks await.
final class Monitor<Value: Sendable>: Sendable {
  private struct Contents: Sendable {
    var value: Value
    var waiters: [Waiter] = []
  }

  private struct Waiter: Sendable {
    let isDone: @Sendable (Value) -> Bool
    let continuation: UnsafeContinuation<Void, Never>
  }

  private let contents: Mutex<Contents>

  init(_ value: Value) { contents = Mutex(Contents(value: value)) }

  var value: Value { contents.withLock { $0.value } }

  @discardableResult
  func update<Output: Sendable>(_ change: (inout Value) -> Output) -> Output {
    let (output, done) = contents.withLock { contents -> (Output, [Waiter]) in
      let output = change(&contents.value)
      // One call for each waiter: the state that it reads may change meanwhile.
      let waiters = contents.waiters.map { ($0, isDone: $0.isDone(contents.value)) }
      if waiters.contains(where: \.isDone) {
        contents.waiters = waiters.filter { !$0.isDone }.map(\.0)
      }
      return (output, waiters.filter(\.isDone).map(\.0))
    }
    for waiter in done { waiter.continuation.resume() }
    return output
  }

  /// Waits, and ignores cancellation.
  func wait(until isDone: @escaping @Sendable (Value) -> Bool) async {
    await withUnsafeContinuation { continuation in
      let isDoneNow = contents.withLock { contents in
        if isDone(contents.value) { return true }
        contents.waiters.append(Waiter(isDone: isDone, continuation: continuation))
        return false
      }
      if isDoneNow { continuation.resume() }
    }
  }
}

/// Records elements in their order.
final class Recorder<Element: Sendable>: Sendable {
  private let monitor = Monitor<[Element]>([])

  var all: [Element] { monitor.value }
  var count: Int { all.count }

  func append(_ element: Element) { monitor.update { $0.append(element) } }
  func clear() { monitor.update { $0 = [] } }

  func wait(forCount count: Int) async { await monitor.wait { $0.count >= count } }
  func wait(until isDone: @escaping @Sendable ([Element]) -> Bool) async {
    await monitor.wait(until: isDone)
  }
}

/// A gate for tasks, which is closed until it is opened, once.
final class Latch: Sendable {
  private let monitor = Monitor(false)

  var isOpen: Bool { monitor.value }
  func open() { monitor.update { $0 = true } }
  func wait() async { await monitor.wait { $0 } }
}

/// A gate for threads, at which a slow handler waits.
final class ThreadLatch: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  func open() { semaphore.signal() }
  func wait() { semaphore.wait() }
}

/// The server of a query: each call waits for the answer of the test.
///
/// Its queries do not retain it. Its deinit releases the contexts and the continuations, which
/// retain their store, and so the query. Otherwise each test would leak a store.
final class Remote<Value: Sendable>: Sendable {
  private let calls: RemoteCalls<Value>
  private var monitor: Monitor<RemoteCalls<Value>.Contents> { calls.monitor }

  init(ignoresCancellation: Bool = false) {
    calls = RemoteCalls(ignoresCancellation: ignoresCancellation)
  }

  deinit { calls.close() }

  var callCount: Int { monitor.value.contexts.count }
  var cancelledCalls: Set<Int> { monitor.value.cancelled }
  func context(of call: Int) -> OperationContext { monitor.value.contexts[call] }

  func query(_ path: OperationPath = ["remote"]) -> Query<Value, any Error> {
    Query(path: path) { [calls] context, continuation in
      try await calls.call(context, continuation)
    }
  }

  func call(
    _ context: OperationContext, _ continuation: OperationContinuation<Value, any Error>
  ) async throws -> Value {
    try await calls.call(context, continuation)
  }

  func yield(_ value: Value, from call: Int = 0) {
    monitor.value.continuations[call].yield(value)
  }
  func yield(error: any Error, from call: Int = 0) {
    monitor.value.continuations[call].yield(error: error)
  }
  func answer(_ value: Value, to call: Int = 0) {
    monitor.update { $0.answers[call] = .success(value) }
  }
  func fail(_ error: any Error, call: Int = 0) {
    monitor.update { $0.answers[call] = .failure(error) }
  }
  /// Releases the contexts and the continuations.
  func forget() {
    let old = monitor.update { contents in
      defer { contents = RemoteCalls.Contents() }
      return contents
    }
    withExtendedLifetime(old) {}
  }
  func wait(forCalls count: Int) async { await monitor.wait { $0.contexts.count >= count } }
  func waitForCancellation(of call: Int = 0) async {
    await monitor.wait { $0.cancelled.contains(call) }
  }
  func waitForEnd(of call: Int = 0) async { await monitor.wait { $0.ended.contains(call) } }
}

/// The part of a ``Remote`` that a query needs.
private final class RemoteCalls<Value: Sendable>: Sendable {
  struct Contents: Sendable {
    var contexts: [OperationContext] = []
    var continuations: [OperationContinuation<Value, any Error>] = []
    var answers: [Int: Result<Value, any Error>] = [:]
    var cancelled: Set<Int> = []
    var ended: Set<Int> = []
    /// A Boolean value that indicates whether no answer will come: a call without an answer ends.
    var isClosed = false
  }

  let monitor = Monitor(Contents())
  /// A Boolean value that indicates whether a call ignores its cancellation.
  let ignoresCancellation: Bool

  init(ignoresCancellation: Bool) { self.ignoresCancellation = ignoresCancellation }

  func call(
    _ context: OperationContext, _ continuation: OperationContinuation<Value, any Error>
  ) async throws -> Value {
    let index = monitor.update { contents -> Int? in
      if contents.isClosed { return nil }
      contents.contexts.append(context)
      contents.continuations.append(continuation)
      return contents.contexts.count - 1
    }
    guard let index else { throw CancellationError() }
    await withTaskCancellationHandler {
      await monitor.wait { [ignoresCancellation] in
        $0.answers[index] != nil || $0.isClosed
          || (!ignoresCancellation && $0.cancelled.contains(index))
      }
    } onCancel: {
      monitor.update { _ = $0.cancelled.insert(index) }
    }
    defer { monitor.update { _ = $0.ended.insert(index) } }
    guard let answer = monitor.value.answers[index] else { throw CancellationError() }
    return try answer.get()
  }

  func close() {
    let old = monitor.update { contents in
      defer { (contents.contexts, contents.continuations, contents.isClosed) = ([], [], true) }
      return contents
    }
    withExtendedLifetime(old) {}
  }
}

extension OperationStore {
  /// Waits until the store satisfies a condition, without a subscription.
  func settles(
    sourceLocation: SourceLocation = #_sourceLocation, _ isDone: (OperationStore<State>) -> Bool
  ) async {
    #expect(await eventually { isDone(self) }, sourceLocation: sourceLocation)
  }

  /// Subscribes a recorder to the events of the store.
  func record() -> (Recorder<OperationEvent<State>>, OperationSubscription) {
    let recorder = Recorder<OperationEvent<State>>()
    return (recorder, subscribe { recorder.append($0) })
  }
}

extension OpaqueOperationStore {
  /// Returns whether it refers to a store. `#expect` does not compile with its existential.
  func isOpaque<State>(of store: OperationStore<State>) -> Bool {
    ObjectIdentifier(base) == ObjectIdentifier(store)
  }
}

extension OperationEvent where State.StateValue == Int? {
  /// A short name, so that sequences of events can be compared.
  var name: String {
    switch self {
    case .stateChanged(let state):
      "state \(state.currentValue.map(String.init) ?? "nil")\(state.isLoading ? "…" : "")"
    case .runStarted: "started"
    case .yielded(let result, _): "yielded \(Self.name(of: result))"
    case .runEnded(let result, _): "ended \(Self.name(of: result))"
    }
  }

  private static func name(of result: Result<State.OperationValue, State.Failure>) -> String {
    switch result {
    case .success(let value): "\(value)"
    case .failure(let error): "\(error)"
    }
  }
}

extension Recorder {
  /// The names of the recorded events.
  func names<State>() -> [String]
  where Element == OperationEvent<State>, State.StateValue == Int? {
    all.map(\.name)
  }
}

/// The factor for the time after which a test counts as stuck. It is greater under a sanitizer.
let patience = ProcessInfo.processInfo.environment["OPERATION_TEST_PATIENCE"].flatMap(Int.init) ?? 1

/// Yields to other tasks until a condition holds that has no notification. Returns `false` if it
/// does not hold after a minute and a thousand yields.
///
/// While thousands of tests run at once, one yield can take more than a minute. The tasks that change the
/// condition take as long for each of their steps. So the time alone does not show that they are stuck.
func eventually(_ isDone: () -> Bool) async -> Bool {
  let end = ContinuousClock.now + .seconds(60 * patience)
  var yieldCount = 0
  while !isDone() {
    if yieldCount > 1_000, ContinuousClock.now > end { return false }
    await Task.yield()
    yieldCount += 1
  }
  return true
}

/// Runs a body on a number of new threads, and waits for all of them.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) async {
  let left = Monitor(count)
  for index in 0..<count {
    Thread.detachNewThread {
      body(index)
      left.update { $0 -= 1 }
    }
  }
  await left.wait { $0 == 0 }
}

/// Ends the process with a line that describes the situation, if the body does not end in time.
func withWatchdog(
  _ situation: @escaping @Sendable () -> String, _ body: () async throws -> Void
) async rethrows {
  let timer = DispatchSource.makeTimerSource()
  let seconds = 600 * patience
  timer.schedule(deadline: .now() + .seconds(seconds))
  timer.setEventHandler { fatalError("stuck for \(seconds) s: \(situation())") }
  timer.activate()
  defer { timer.cancel() }
  try await body()
}

/// A number that several threads increment.
final class Counter: Sendable {
  private let count = Atomic(0)

  var value: Int { count.load(ordering: .acquiring) }
  @discardableResult
  func increment() -> Int { count.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue }
}

/// Counts the live objects of one test.
final class LiveCount: Sendable {
  private let count = Atomic(0)

  var value: Int { count.load(ordering: .acquiring) }
  func makeProbe() -> Probe { Probe(self) }

  final class Probe: Sendable {
    private let owner: LiveCount

    init(_ owner: LiveCount) {
      self.owner = owner
      owner.count.wrappingAdd(1, ordering: .acquiringAndReleasing)
    }

    deinit { owner.count.wrappingSubtract(1, ordering: .acquiringAndReleasing) }
  }
}

/// Calls a closure in its deinit.
final class OnDeinit: Sendable {
  private let action: @Sendable () -> Void

  init(_ action: @escaping @Sendable () -> Void) { self.action = action }
  deinit { action() }
}
