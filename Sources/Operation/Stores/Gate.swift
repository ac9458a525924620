import Dispatch
import Glibc

/// Tells threads apart, also after they have ended and begun anew, as long as they live.
@usableFromInline struct ThreadID: Sendable, Hashable {
  @usableFromInline let rawValue: UInt

  @usableFromInline static var current: ThreadID { ThreadID(rawValue: UInt(pthread_self())) }
}

/// Where one thread waits until another one lets it go on.
@usableFromInline final class Gate: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  @usableFromInline func wait() { semaphore.wait() }
  @usableFromInline func open() { semaphore.signal() }
}
