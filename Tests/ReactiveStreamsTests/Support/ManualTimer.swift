import ReactiveStreams
import Synchronization

/// A timer for `debounce` and `throttle` that moves only when it is advanced.
///
/// The lock guards the state. Actions are called, and released, without it.
final class ManualTimer: Sendable {
  private typealias Action = @Sendable () -> Void

  private struct State: Sendable {
    var now = Duration.zero
    var nextID = 0
    var pending: [(id: Int, deadline: Duration, action: Action)] = []
  }

  private let state = Mutex(State())

  /// The number of timers that have neither fired nor ended.
  var pendingCount: Int { state.withLock { $0.pending.count } }
  /// The number of timers that were ever started.
  var startCount: Int { state.withLock { $0.nextID } }

  @Sendable func schedule(
    after duration: Duration, _ action: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    let id = state.withLock { state in
      state.pending.append((state.nextID, state.now + duration, action))
      defer { state.nextID += 1 }
      return state.nextID
    }
    return OperationSubscription { [self] in
      let removed = state.withLock { state in
        state.pending.firstIndex { $0.id == id }.map { state.pending.remove(at: $0).action }
      }
      withExtendedLifetime(removed) {}
    }
  }

  /// Advances the time, and calls the actions that are due, in the order of the deadlines.
  func advance(by duration: Duration) {
    state.withLock { $0.now += duration }
    while let action = takeDue() { action() }
  }

  private func takeDue() -> Action? {
    state.withLock { state in
      let due = state.pending.indices
        .filter { state.pending[$0].deadline <= state.now }
        .min { state.pending[$0].deadline < state.pending[$1].deadline }
      return due.map { state.pending.remove(at: $0).action }
    }
  }
}
