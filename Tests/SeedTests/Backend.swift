import SharingOperation
import Synchronization

/// The backend of the requests of the articles. It records every call, and a test can hold a call
/// or let it fail.
///
/// The articles call plain functions such as `fetchFriends(userId:page:)`, so the backend of a test
/// is a task-local, which reaches the runs of the stores.
final class Backend: Sendable {
  @TaskLocal static var current = Backend()

  struct Refused: Error, Equatable {}

  private struct State {
    var calls: [String] = []
    var held: Set<String> = []
    var refused: [String: Int] = [:]
    var waiting: [String: [CheckedContinuation<Void, Never>]] = [:]
    var observers: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state = Mutex(State())

  /// The calls so far, in their order.
  var calls: [String] { state.withLock { $0.calls } }

  /// Holds the next calls with this text until they are released.
  func hold(_ call: String) { _ = state.withLock { $0.held.insert(call) } }

  /// Lets the next calls with this text fail.
  func refuse(_ call: String, times: Int = 1) { state.withLock { $0.refused[call] = times } }

  /// Resumes the held calls with this text, and holds no later ones.
  func release(_ call: String) {
    let waiting = state.withLock { state in
      state.held.remove(call)
      return state.waiting.removeValue(forKey: call) ?? []
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Returns when there have been at least `count` calls.
  func calls(atLeast count: Int) async {
    await withCheckedContinuation { continuation in
      let isReached = state.withLock { state in
        if state.calls.count >= count { return true }
        state.observers.append((count, continuation))
        return false
      }
      if isReached { continuation.resume() }
    }
  }

  /// Records a call, waits while it is held, and throws if it is refused.
  func respond(to call: String) async throws {
    let (isHeld, observers) = state.withLock { state in
      state.calls.append(call)
      let count = state.calls.count
      let due = state.observers.filter { $0.count <= count }.map(\.continuation)
      state.observers.removeAll { $0.count <= count }
      return (state.held.contains(call), due)
    }
    for observer in observers { observer.resume() }
    if isHeld { await wait(for: call) }
    let isRefused = state.withLock { state in
      guard let count = state.refused[call], count > 0 else { return false }
      state.refused[call] = count - 1
      return true
    }
    if isRefused { throw Refused() }
  }

  private func wait(for call: String) async {
    await withCheckedContinuation { continuation in
      let isReleased = state.withLock { state in
        guard state.held.contains(call) else { return true }
        state.waiting[call, default: []].append(continuation)
        return false
      }
      if isReleased { continuation.resume() }
    }
  }
}

/// Calls `body` with a new backend and a new client, which is also that of the wrappers.
func withBackend(
  clock: any OperationClock = SystemClock(),
  _ body: (Backend, OperationClient) async throws -> Void
) async throws {
  let backend = Backend()
  let client = OperationClient(defaults: .testing, clock: clock)
  try await Backend.$current.withValue(backend) {
    try await OperationClient.withCurrent(client) {
      try await body(backend, client)
    }
  }
}

/// The thread that the recursive requests of the articles fetch. One fetch returns one level of it.
let repliesByComment: [Int: [Int]] = [0: [10, 20], 10: [11, 12], 20: [21]]
