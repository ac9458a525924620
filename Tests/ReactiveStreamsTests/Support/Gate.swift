import Dispatch
import Foundation

/// How many seconds without an end are a deadlock: a minute, and more under a sanitizer.
private let deadlock: TimeInterval = {
  let patience = ProcessInfo.processInfo.environment["OPERATION_TEST_PATIENCE"]
  return 60 * (patience.flatMap(TimeInterval.init) ?? 1)
}()

/// A door that threads wait at until another opens it; it stays open.
///
/// For handlers, which are called on threads and cannot suspend.
final class Gate: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  func open() {
    semaphore.signal()
  }

  /// Waits until the gate is open. A minute without it is a deadlock: then the wait ends in false.
  @discardableResult
  func wait() -> Bool {
    guard semaphore.wait(timeout: .now() + deadlock) == .success else { return false }
    semaphore.signal()
    return true
  }
}

/// Runs `work` on `count` threads of their own, and waits for all. They start at the same moment.
///
/// Threads of their own, so that a blocked one never keeps another from its start.
func storm(_ count: Int, _ work: @escaping @Sendable (Int) -> Void) -> Bool {
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

/// Runs `work` on a thread of its own, and gives the gate that opens at its end.
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
