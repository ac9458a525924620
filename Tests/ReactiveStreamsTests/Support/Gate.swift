import Dispatch
import Foundation

/// The number of seconds after which a wait counts as a deadlock: five minutes, more under a sanitizer.
private let deadlock: TimeInterval = {
  let patience = ProcessInfo.processInfo.environment["OPERATION_TEST_PATIENCE"]
  return 300 * (patience.flatMap(TimeInterval.init) ?? 1)
}()

/// A gate that blocks threads until another thread opens it. It stays open.
///
/// For handlers, which are called on threads and cannot suspend.
final class Gate: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  func open() {
    semaphore.signal()
  }

  /// Waits until the gate is open. Returns false after five minutes, which counts as a deadlock.
  @discardableResult
  func wait() -> Bool {
    guard semaphore.wait(timeout: .now() + deadlock) == .success else { return false }
    semaphore.signal()
    return true
  }
}

/// Runs `work` on `count` new threads that start together, and waits for all of them.
///
/// The threads are new, so that a blocked one never delays the start of another.
func onThreads(_ count: Int, _ work: @escaping @Sendable (Int) -> Void) -> Bool {
  let group = DispatchGroup()
  let start = Gate()
  for index in 0..<count {
    onThread(in: group) {
      start.wait()
      work(index)
    }
  }
  start.open()
  return group.wait(timeout: .now() + deadlock) == .success
}

/// Runs `work` on a new thread, and returns a gate that opens at its end.
@discardableResult
func onThread(in group: DispatchGroup? = nil, _ work: @escaping @Sendable () -> Void) -> Gate {
  let done = Gate()
  group?.enter()
  let thread = Thread {
    work()
    done.open()
    group?.leave()
  }
  thread.start()
  return done
}
