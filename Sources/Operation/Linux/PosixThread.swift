import Glibc

/// A thread that waits for the system, so that no thread of a pool has to.
///
/// It blocks all signals but those of a crash: the handler of a blocked one is not called, and the kernel
/// ends the program.
///
/// If it is joined, its body calls no code of a user. So ``join()`` waits for the system only.
struct PosixThread: Sendable {
  private final class Body: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  private let thread: pthread_t

  /// Starts a thread. Throws an error if the system has no more threads.
  init(_ run: @escaping @Sendable () -> Void) throws(SystemError) {
    var (all, mask, thread) = (sigset_t(), sigset_t(), pthread_t())
    // `pthread_create` passes a pointer to the thread, so the reference travels as one.
    let body = Unmanaged.passRetained(Body(run))
    sigfillset(&all)
    for crash in [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT] {
      sigdelset(&all, crash)
    }
    // The new thread inherits the mask.
    pthread_sigmask(SIG_SETMASK, &all, &mask)
    let result = pthread_create(
      &thread, nil,
      { body in
        guard let body else { return nil }
        Unmanaged<Body>.fromOpaque(body).takeRetainedValue().run()
        return nil
      }, body.toOpaque())
    pthread_sigmask(SIG_SETMASK, &mask, nil)
    guard result == 0 else {
      body.release()
      throw SystemError(code: result)
    }
    self.thread = thread
  }

  /// Waits until the body has returned and was released. Called once.
  func join() { pthread_join(thread, nil) }

  /// Lets the thread end by itself. Called once, instead of ``join()``.
  func detach() { pthread_detach(thread) }
}

/// An identifier of a thread, unique among the threads that exist.
package struct ThreadID: Sendable, Hashable {
  let rawValue: UInt

  package static var current: ThreadID { ThreadID(rawValue: UInt(pthread_self())) }
}
