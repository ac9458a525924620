import Glibc
import ReactiveStreams
import Synchronization

/// The handlers of the terminal's signals, and the record that a ``TerminalActivityObserver`` reads.
///
/// A handler interrupts any thread at any place. So it takes no lock and allocates nothing, not even
/// a witness table that is made at its first use: it changes a number and sends a byte. The sockets are
/// never closed, so that no other file can have their descriptors during a handler.
enum TerminalSignals {
  fileprivate typealias Handler =
    @convention(c) (Int32, UnsafeMutablePointer<siginfo_t>?, UnsafeMutableRawPointer?) -> Void

  /// A signal, its handler, and the action before it.
  private struct Signal {
    let number: Int32
    let handler: Handler
    var previous = sigaction()
    /// Whether the handler was installed and not removed. A later handler may have replaced it, and
    /// may call it.
    var isInstalled = false
  }

  /// What the handlers share with the other code.
  private struct Shared: ~Copyable {
    let record = Atomic(StopRecord().rawValue)
    let acknowledgedStops = Atomic(UInt64(0))
    let areInstalled = Atomic(false)
    /// The descriptor to which the handlers send; negative where there is none.
    let sender = Atomic<Int32>(-1)
    let stop = UnsafeMutablePointer<Signal>.allocate(capacity: 1)
    let resume = UnsafeMutablePointer<Signal>.allocate(capacity: 1)

    init() {
      stop.initialize(to: Signal(number: SIGTSTP, handler: handleStop))
      resume.initialize(to: Signal(number: SIGCONT, handler: handleContinue))
    }
  }

  // Its pointers are unsafe: no checked type can be shared with a signal handler, which can take no
  // lock. One thread at a time writes to the signals, before it installs the handler that reads them.
  nonisolated(unsafe) private static let shared = Shared()

  static var record: StopRecord { StopRecord(rawValue: shared.record.load(ordering: .acquiring)) }

  /// Whether ``install()`` was called, and ``restore()`` was not.
  static var areInstalled: Bool { shared.areInstalled.load(ordering: .sequentiallyConsistent) }

  /// Installs the handlers, where the program permits it. Called by one thread at a time.
  static func install() {
    shared.areInstalled.store(true, ordering: .sequentiallyConsistent)
    install(shared.resume)
    install(shared.stop)
  }

  /// Restores the earlier actions, where the handlers were not replaced.
  static func restore() {
    shared.areInstalled.store(false, ordering: .sequentiallyConsistent)
    restore(shared.stop)
    restore(shared.resume)
    // No subscriber is left to be notified.
    acknowledge(record)
  }

  /// They are never closed.
  private static let sockets = LastElement<(receiver: FileDescriptor, sender: FileDescriptor)>()

  /// Returns the descriptor that can be read when a handler has changed the record. Called by one thread at
  /// a time, before it installs the handlers.
  static func receiver() throws(SystemError) -> FileDescriptor {
    if let (receiver, _) = sockets.value { return receiver }
    let (receiver, sender) = try FileDescriptor.pair()
    sockets.set((receiver, sender))
    shared.sender.store(sender.number, ordering: .relaxed)
    return receiver
  }

  /// Makes the descriptor readable. If the buffer is full, it is readable already.
  private static func wake() {
    var byte: UInt8 = 0
    let flags = Int32(MSG_NOSIGNAL | MSG_DONTWAIT)
    _ = send(shared.sender.load(ordering: .relaxed), &byte, 1, flags)
  }

  /// Lets the program stop: all subscribers were notified of the stops in the record.
  static func acknowledge(_ record: StopRecord) {
    shared.acknowledgedStops.max(record.stopCount, ordering: .releasing)
  }
}

extension TerminalSignals {
  private static func install(_ signal: UnsafeMutablePointer<Signal>) {
    let number = signal.pointee.number
    var action = sigaction.present(for: number)
    let isDefault = action.isDefault
    // A handler that may call this one must not be replaced: this one would call itself.
    guard isDefault || (number == SIGCONT && !signal.pointee.isInstalled && !action.isIgnored)
    else { return }
    signal.pointee.previous = action
    signal.pointee.isInstalled = true
    if isDefault { action.sa_flags = SA_RESTART | SA_ONSTACK }
    action.sa_flags |= SA_SIGINFO
    action.__sigaction_handler.sa_sigaction = signal.pointee.handler
    sigaction(number, &action, nil)
  }

  private static func restore(_ signal: UnsafeMutablePointer<Signal>) {
    let action = sigaction.present(for: signal.pointee.number)
    guard action.isHandled(by: signal.pointee.handler) else { return }
    sigaction(signal.pointee.number, &signal.pointee.previous, nil)
    signal.pointee.isInstalled = false
  }

  private static func change(_ change: (inout StopRecord) -> Void) -> StopRecord {
    var old = shared.record.load(ordering: .relaxed)
    while true {
      var record = StopRecord(rawValue: old)
      change(&record)
      let (exchanged, original) = shared.record.weakCompareExchange(
        expected: old, desired: record.rawValue, ordering: .acquiringAndReleasing)
      if exchanged { return record }
      old = original
    }
  }

  private static let handleContinue: Handler = { number, info, context in
    let error = errno
    _ = change { $0.continued() }
    wake()
    let previous = shared.resume.pointee.previous
    if previous.sa_flags & SA_SIGINFO != 0 {
      previous.__sigaction_handler.sa_sigaction?(number, info, context)
    } else if !previous.isDefault {
      previous.__sigaction_handler.sa_handler?(number)
    }
    errno = error
  }

  private static let handleStop: Handler = { _, _, _ in
    let error = errno
    if areInstalled {
      let stop = change { $0.stop() }
      wake()
      waitForAcknowledgement(of: stop)
      // Not after a SIGCONT, which was meant to end this stop.
      if record.rawValue == stop.rawValue { stopByDefault() }
      // Another thread may have recorded a later stop.
      _ = change { if $0.stopCount == stop.stopCount { $0.stopReturned() } }
      wake()
    } else {
      stopByDefault()
    }
    errno = error
  }

  /// Waits for 100 ms at most: a subscriber may need the thread that was interrupted.
  private static func waitForAcknowledgement(of stop: StopRecord) {
    var milliseconds = 0
    while milliseconds < 100, record.rawValue == stop.rawValue,
      shared.acknowledgedStops.load(ordering: .acquiring) < stop.stopCount
    {
      poll(nil, 0, 1)
      milliseconds += 1
    }
  }

  /// Performs the default action: the kernel stops the program, unless no shell could continue it.
  private static func stopByDefault() {
    var (handled, byDefault) = (sigaction(), sigaction())
    var (signal, mask) = (sigset_t(), sigset_t())
    sigemptyset(&signal)
    sigaddset(&signal, SIGTSTP)
    sigaction(SIGTSTP, &byDefault, &handled)
    raise(SIGTSTP)
    // The signal is blocked during its handler, so the program stops here.
    pthread_sigmask(SIG_UNBLOCK, &signal, &mask)
    pthread_sigmask(SIG_SETMASK, &mask, nil)
    let wasRestored = handled.isHandled(by: handleStop) && !areInstalled
    if sigaction.present(for: SIGTSTP).isDefault, !wasRestored { sigaction(SIGTSTP, &handled, nil) }
  }
}

extension sigaction {
  fileprivate static func present(for number: Int32) -> sigaction {
    var action = sigaction()
    sigaction(number, nil, &action)
    return action
  }

  private var address: Int { unsafeBitCast(__sigaction_handler.sa_sigaction, to: Int.self) }

  fileprivate var isDefault: Bool { address == unsafeBitCast(SIG_DFL, to: Int.self) }
  fileprivate var isIgnored: Bool { address == unsafeBitCast(SIG_IGN, to: Int.self) }

  fileprivate func isHandled(by handler: TerminalSignals.Handler) -> Bool {
    address == unsafeBitCast(handler, to: Int.self)
  }
}
