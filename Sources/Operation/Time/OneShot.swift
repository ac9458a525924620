import Synchronization

/// An event that occurs at most once, and that one task waits for.
///
/// The lock guards the state. The continuation is resumed without it.
final class OneShot: Sendable {
  private enum State: Sendable {
    case open
    case waiting(CheckedContinuation<Bool, Never>)
    case finished(Bool)
  }

  private let state = Mutex(State.open)

  /// Notes whether the event has occurred or was given up. Later calls have no effect.
  func finish(_ hasOccurred: Bool) {
    let waiter = state.withLock { state -> CheckedContinuation<Bool, Never>? in
      if case .finished = state { return nil }
      defer { state = .finished(hasOccurred) }
      if case .waiting(let waiter) = state { return waiter }
      return nil
    }
    waiter?.resume(returning: hasOccurred)
  }

  /// Waits, and returns whether the event has occurred; `false` if the task is cancelled first.
  ///
  /// - Parameter onCancel: Called in the cancellation of the task, before the task resumes.
  nonisolated(nonsending) func wait(onCancel: @Sendable () -> Void = {}) async -> Bool {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let result = state.withLock { state -> Bool? in
          if case .finished(let hasOccurred) = state { return hasOccurred }
          state = .waiting(continuation)
          return nil
        }
        if let result { continuation.resume(returning: result) }
      }
    } onCancel: {
      onCancel()
      finish(false)
    }
  }
}
