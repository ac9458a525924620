import Glibc
import Synchronization

/// The signals of the terminal, their handlers, and what these leave for the ``TerminalWatch``.
///
/// A handler interrupts any thread anywhere, so it takes no lock and no memory, not even that of a
/// witness table which is made when it is first needed: it changes a number and rings a bell. A
/// semaphore is that bell, as it has no descriptor that could be closed, and belong to somebody
/// else, while a handler uses it.
enum TerminalSignals {
  fileprivate typealias Handler =
    @convention(c) (Int32, UnsafeMutablePointer<siginfo_t>?, UnsafeMutableRawPointer?) -> Void

  /// A signal, and what handled it before.
  private struct Taken {
    let number: Int32
    let handler: Handler
    var previous = sigaction()
    /// Whether the handler was installed and not removed; it may lie under a later one.
    var isInstalled = false
  }

  private struct Memory {
    let bell = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    let stop = UnsafeMutablePointer<Taken>.allocate(capacity: 1)
    let resume = UnsafeMutablePointer<Taken>.allocate(capacity: 1)

    init() {
      sem_init(bell, 0, 0)
      stop.initialize(to: Taken(number: SIGTSTP, handler: handleStop))
      resume.initialize(to: Taken(number: SIGCONT, handler: handleContinue))
    }
  }

  private struct Shared: ~Copyable, Sendable {
    let note = Atomic(TerminalNote().rawValue)
    let toldStops = Atomic(UInt64(0))
    let isWatched = Atomic(false)
  }

  private static let shared = Shared()
  // Pointers, which no checked type can share with a signal handler: that can take no lock. What they
  // point to is written by one thread at a time, and before the handler that reads it is installed.
  nonisolated(unsafe) private static let memory = Memory()

  static var note: TerminalNote { TerminalNote(rawValue: shared.note.load(ordering: .acquiring)) }

  /// Installs the handlers, where the program lets it; called by one thread at a time.
  static func take() {
    shared.isWatched.store(true, ordering: .sequentiallyConsistent)
    install(memory.resume)
    install(memory.stop)
  }

  /// Removes the handlers that are still in their places.
  static func putBack() {
    shared.isWatched.store(false, ordering: .sequentiallyConsistent)
    remove(memory.stop)
    remove(memory.resume)
  }

  static func ring() {
    sem_post(memory.bell)
  }

  /// Waits for the bell, or for a second only.
  static func wait(forASecond isTimed: Bool) {
    var end = timespec()
    clock_gettime(CLOCK_REALTIME, &end)
    end.tv_sec += 1
    _ = isTimed ? sem_timedwait(memory.bell, &end) : sem_wait(memory.bell)
  }

  /// Lets the program stop: everybody has been told.
  static func acknowledge(_ note: TerminalNote) {
    shared.toldStops.store(note.stopCount, ordering: .releasing)
  }
}

extension TerminalSignals {
  private static func install(_ taken: UnsafeMutablePointer<Taken>) {
    let number = taken.pointee.number
    var present = sigaction()
    sigaction(number, nil, &present)
    let isDefault = present.isDefault
    // Over a handler that may call this one, this one would call itself.
    guard isDefault || (number == SIGCONT && !taken.pointee.isInstalled && !present.isIgnored)
    else { return }
    taken.pointee.previous = present
    taken.pointee.isInstalled = true
    if isDefault { present.sa_flags = SA_RESTART | SA_ONSTACK }
    present.sa_flags |= SA_SIGINFO
    present.__sigaction_handler.sa_sigaction = taken.pointee.handler
    sigaction(number, &present, nil)
  }

  private static func remove(_ taken: UnsafeMutablePointer<Taken>) {
    var present = sigaction()
    sigaction(taken.pointee.number, nil, &present)
    guard present.isHandled(by: taken.pointee.handler) else { return }
    sigaction(taken.pointee.number, &taken.pointee.previous, nil)
    taken.pointee.isInstalled = false
  }

  private static func change(_ change: (inout TerminalNote) -> Void) -> TerminalNote {
    var old = shared.note.load(ordering: .relaxed)
    while true {
      var note = TerminalNote(rawValue: old)
      change(&note)
      let (exchanged, original) = shared.note.weakCompareExchange(
        expected: old, desired: note.rawValue, ordering: .acquiringAndReleasing)
      if exchanged { return note }
      old = original
    }
  }

  private static let handleContinue: Handler = { number, info, context in
    let error = errno
    _ = change { $0.continued() }
    ring()
    let previous = memory.resume.pointee.previous
    if previous.sa_flags & SA_SIGINFO != 0 {
      previous.__sigaction_handler.sa_sigaction?(number, info, context)
    } else if !previous.isDefault {
      previous.__sigaction_handler.sa_handler?(number)
    }
    errno = error
  }

  private static let handleStop: Handler = { _, _, _ in
    let error = errno
    if shared.isWatched.load(ordering: .sequentiallyConsistent) {
      let stop = change { $0.stop() }
      ring()
      waitUntilTold(stop)
      // Not after a SIGCONT: it was meant to undo the stop.
      if note.rawValue == stop.rawValue { stopByDefault() }
      // Not that of another thread, which has come meanwhile.
      _ = change { if $0.stopCount == stop.stopCount { $0.stopReturned() } }
      ring()
    } else {
      stopByDefault()
    }
    errno = error
  }

  /// Waits, at most for a tenth of a second: what it interrupted may be what is needed to tell.
  private static func waitUntilTold(_ stop: TerminalNote) {
    var milliseconds = 0
    while milliseconds < 100, note.rawValue == stop.rawValue,
      shared.toldStops.load(ordering: .acquiring) < stop.stopCount
    {
      poll(nil, 0, 1)
      milliseconds += 1
    }
  }

  /// Does what the signal does where nobody handles it: the kernel stops the program, unless there
  /// is no shell that could continue it.
  private static func stopByDefault() {
    var (present, plain, later) = (sigaction(), sigaction(), sigaction())
    var (signal, mask) = (sigset_t(), sigset_t())
    sigemptyset(&signal)
    sigaddset(&signal, SIGTSTP)
    sigaction(SIGTSTP, &plain, &present)
    raise(SIGTSTP)
    // It has been blocked until here, and stops the program here.
    pthread_sigmask(SIG_UNBLOCK, &signal, &mask)
    pthread_sigmask(SIG_SETMASK, &mask, nil)
    sigaction(SIGTSTP, nil, &later)
    let isOver =
      present.isHandled(by: handleStop) && !shared.isWatched.load(ordering: .sequentiallyConsistent)
    if later.isDefault, !isOver { sigaction(SIGTSTP, &present, nil) }
  }
}

extension sigaction {
  private var address: Int { unsafeBitCast(__sigaction_handler.sa_sigaction, to: Int.self) }

  fileprivate var isDefault: Bool { address == unsafeBitCast(SIG_DFL, to: Int.self) }
  fileprivate var isIgnored: Bool { address == unsafeBitCast(SIG_IGN, to: Int.self) }

  fileprivate func isHandled(by handler: TerminalSignals.Handler) -> Bool {
    address == unsafeBitCast(handler, to: Int.self)
  }
}
