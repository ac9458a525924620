import Dispatch
import Glibc
public import ReactiveStreams

/// An observer of whether the program is suspended, by the signals `SIGTSTP` and `SIGCONT`.
///
/// A program is in the background between these signals, and otherwise in the foreground: a job that
/// was started with `&` or `nohup` is as active as any other. When the user suspends the program,
/// handlers are called before it stops; a slow handler delays the stop by at most 100 ms. A stop that
/// cannot be caught, or that the program handles itself, is notified of when it is over, right before
/// the change that follows it.
///
/// The program keeps its signals:
/// - The handlers are installed for the first subscription. After the last one, the earlier actions
///   are restored, unless the program has installed a handler meanwhile, which is kept.
/// - `SIGTSTP` is caught only where the program neither handles nor ignores it, and still stops the
///   program.
/// - An earlier handler of `SIGCONT` is called as before. An ignored signal stays ignored.
/// - A handler that the program installs later receives the signal, and can call the one that it
///   replaced.
/// - System calls continue after a signal where `SA_RESTART` provides for it. Others, such as
///   `poll`, end with `EINTR` on the thread that received the signal. See
///   [signal(7)](https://man7.org/linux/man-pages/man7/signal.7.html).
///
/// A `SIGCONT` for a program that was not stopped cannot be distinguished from the end of a stop.
///
/// One thread waits for the signals while there are subscribers.
public final class TerminalActivityObserver: ApplicationActivityObserver {
  /// The observer of this process.
  public static let shared = TerminalActivityObserver()

  private static let queue = DispatchQueue(label: "swift-operation.terminal")

  private let activity = ObservedValue(
    measure: { TerminalSignals.record.activity }, feed: TerminalActivityObserver.begin)

  private init() {}

  /// The present activity.
  ///
  /// With subscribers, this is the activity that they were notified of last.
  public var currentActivity: ApplicationActivity { activity.value }

  /// Calls `handler` with each later change, on a queue of the library, or on a thread that
  /// subscribes.
  ///
  /// - Parameter handler: Called with no lock held, in the order of the changes.
  /// - Returns: The subscription, which ends with its last copy.
  public func subscribe(
    _ handler: @escaping @Sendable (ApplicationActivity) -> Void
  ) -> OperationSubscription { activity.subscribe(handler) }
}

extension TerminalActivityObserver {
  /// Calls `notify` with the present activity, and on a queue with each later one, until the
  /// subscription is cancelled. One feed is in progress at a time.
  @Sendable
  private static func begin(
    _ notify: @escaping @Sendable (ApplicationActivity) -> Void
  ) -> OperationSubscription {
    let first = TerminalSignals.record
    // The record that was read last; used on the queue only.
    let last = LastElement(first)
    let hasEnded = LastElement(false)
    notify(first.activity)
    do throws(SystemError) {
      let receiver = try TerminalSignals.receiver()
      let poll = try DescriptorPoll([receiver], for: POLLIN) { _, _ in
        var bytes = [UInt8](repeating: 0, count: 64)
        // Before the record is read.
        _ = recv(receiver.number, &bytes, bytes.count, 0)
        // On a queue: a thread that cancels waits for this one, and may be what a handler waits for.
        queue.async {
          let record = TerminalSignals.record
          // A later stop is one of the next feed.
          if hasEnded.value == true { return }
          for activity in record.activities(since: last.value ?? first) { notify(activity) }
          last.set(record)
          TerminalSignals.acknowledge(record)
        }
        return true
      }
      TerminalSignals.install()
      return OperationSubscription {
        TerminalSignals.restore()
        hasEnded.set(true)
        poll.end()
      }
    } catch {
      OperationIssue.report(
        .unavailableSource,
        "There are no descriptors left, or no threads, to wait for the signals of the terminal; no "
          + "change of activity is reported.")
      return .empty
    }
  }
}
