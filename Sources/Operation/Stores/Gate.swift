import Dispatch
import Glibc

/// Tells threads apart, also after they have ended and begun anew, as long as they live.
struct ThreadID: Sendable, Hashable {
  let rawValue: UInt

  static var current: ThreadID { ThreadID(rawValue: UInt(pthread_self())) }
}

/// Where one thread waits until another one lets it go on.
final class Gate: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  func wait() { semaphore.wait() }
  func open() { semaphore.signal() }
}
