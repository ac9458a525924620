import Dispatch
import ReactiveStreams

/// What a ``TerminalActivityObserver`` observes: what the signal handlers have recorded, read by a
/// thread that waits for them.
enum TerminalFeed {
  private static let queue = DispatchQueue(label: "swift-operation.terminal")

  /// Calls `notify` with the present activity, and on a queue with each later one, until the
  /// subscription is cancelled. One feed runs at a time.
  @Sendable
  static func begin(
    _ notify: @escaping @Sendable (ApplicationActivity) -> Void
  ) -> OperationSubscription {
    let start = TerminalSignals.record
    notify(TerminalActivityObserver.measured(start))
    TerminalSignals.install()
    guard let thread = PosixThread({ run(from: start, notify) }) else {
      TerminalSignals.restore()
      OperationIssue(
        kind: .unavailableSource,
        message: "There is no thread left to watch the terminal; no change of activity is reported."
      ).report()
      return .empty
    }
    return OperationSubscription {
      TerminalSignals.restore()
      TerminalSignals.wake()
      thread.join()
    }
  }

  private static func run(
    from start: StopRecord, _ notify: @escaping @Sendable (ApplicationActivity) -> Void
  ) {
    var last = start
    // Reads once before the first wait: the activity may have changed since `begin` measured it.
    while TerminalSignals.areInstalled {
      let record = TerminalSignals.record
      let measured = TerminalActivityObserver.measured(record)
      let activities = record.activities(since: last, measured: measured)
      last = record
      // On a queue: a thread that cancels waits for this one, and may be what a handler waits for.
      queue.async {
        for activity in activities { notify(activity) }
        TerminalSignals.acknowledge(record)
      }
      TerminalSignals.wait(forASecond: measured == .background)
    }
  }
}
