import Glibc
public import ReactiveStreams

/// Follows a program of a terminal into the background and back, by `SIGTSTP` and `SIGCONT`.
///
/// A program that runs is in the foreground, unless its terminal is in the hands of another one.
/// When the user stops it, those who subscribed are told before it stops; a slow handler delays
/// that by a tenth of a second at most. A stop that cannot be caught, or that the program handles
/// itself, is told when it is over, right before what follows it. In the background the observer
/// looks at the terminal once a second, as a shell may bring a running program to the front without
/// a signal.
///
/// The program keeps its signals:
/// - Nothing is installed before the first subscription, and what was there is put back after the
///   last one, unless the program has installed something of its own meanwhile, which stays.
/// - `SIGTSTP` is caught only where nobody handles or ignores it, and stops the program as ever.
/// - A handler of `SIGCONT` that was there is called as before. An ignored signal stays ignored.
/// - A handler that is installed later takes the signal, and can pass it on to the one it replaced.
/// - System calls go on after a signal where `SA_RESTART` sees to that; others, as `poll`, end with
///   `EINTR` in the thread that took it.
///
/// `SIGCONT` for a program that was not stopped cannot be told from the end of a stop.
public final class TerminalActivityObserver: ApplicationActivityObserver {
  /// The observer of this process.
  public static let shared = TerminalActivityObserver()

  private let activity = ObservedValue(
    ApplicationActivity.foreground, measure: { measured() }, feed: TerminalWatch.begin)

  private init() {}

  /// Where the program is now; asks the terminal while nobody has subscribed.
  public var currentActivity: ApplicationActivity { activity.value }

  /// Calls `handler` with every change from now on, on a thread of the library, or on one
  /// that subscribes.
  public func subscribe(
    _ handler: @escaping @Sendable (ApplicationActivity) -> Void
  ) -> OperationSubscription {
    activity.subscribe(handler)
  }

  /// Where the program is, when the signals have left this note.
  static func measured(_ note: TerminalNote = TerminalSignals.note) -> ApplicationActivity {
    guard note.isRunning else { return .background }
    let terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
    guard terminal >= 0 else { return .foreground }
    defer { close(terminal) }
    let front = tcgetpgrp(terminal)
    return front < 0 || front == getpgrp() ? .foreground : .background
  }
}
