import Glibc

/// A thread that waits for the system, so that no thread of a pool has to; it takes no signals.
///
/// Its body calls nobody's code, so that a ``join()`` waits for the thread alone.
struct WatchThread: Sendable {
  private final class Body: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  private let thread: pthread_t

  /// Starts a thread, unless the system has none left.
  init?(_ run: @escaping @Sendable () -> Void) {
    var (all, mask, thread) = (sigset_t(), sigset_t(), pthread_t())
    let body = Unmanaged.passRetained(Body(run))
    sigfillset(&all)
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
      return nil
    }
    self.thread = thread
  }

  /// Waits, once, until the body has returned and the thread is gone.
  func join() {
    pthread_join(thread, nil)
  }
}
