import ReactiveStreams
import Synchronization

/// A value that is set once, and that one task waits for.
///
/// The lock guards the state. The continuation is resumed without it.
final class OneShot<Value: Sendable>: Sendable {
  private typealias Waiter = CheckedContinuation<Value, Never>

  /// There is no waiter any more when there is a value.
  private let state = Mutex<(value: Value?, waiter: Waiter?)>((nil, nil))

  /// Whether there is no value yet.
  var isOpen: Bool { state.withLock { $0.value == nil } }

  /// Sets the value. Later calls have no effect.
  func finish(_ value: Value) {
    let waiter: Waiter? = state.withLock { state in
      guard state.value == nil else { return nil }
      state.value = value
      return state.waiter.take()
    }
    waiter?.resume(returning: value)
  }

  /// Waits for the value.
  ///
  /// - Parameter onCancel: Called when the task is cancelled. Returns the value, unless it is set
  ///   already.
  nonisolated(nonsending) func wait(onCancel: @Sendable () -> Value) async -> Value {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let result = state.withLock { state in
          if state.value == nil { state.waiter = continuation }
          return state.value
        }
        if let result { continuation.resume(returning: result) }
      }
    } onCancel: {
      finish(onCancel())
    }
  }
}

extension OneShot<Bool> {
  /// Waits, and returns whether an event has occurred; `false` if the task is cancelled first.
  nonisolated(nonsending) func wait() async -> Bool { await wait { false } }
}

/// Waits until a condition holds; returns `false` if the task is cancelled first.
///
/// - Parameters:
///   - holds: The condition. It is called on any thread.
///   - subscribe: Subscribes a closure that is called whenever the condition may have changed.
nonisolated(nonsending) func wait(
  until holds: @escaping @Sendable () -> Bool,
  changes subscribe: (@escaping @Sendable () -> Void) -> OperationSubscription
) async -> Bool {
  if holds() { return !Task.isCancelled }
  let shot = OneShot<Bool>()
  let subscription = subscribe { if holds() { shot.finish(true) } }
  if holds() { shot.finish(true) }
  defer { subscription.cancel() }
  return await shot.wait()
}
