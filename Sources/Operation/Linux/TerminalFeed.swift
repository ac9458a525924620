import Dispatch
import ReactiveStreams
import Synchronization

/// What a ``TerminalActivityObserver`` observes: the record of the signal handlers, read on a queue
/// whenever one of them has changed it.
final class TerminalFeed: Sendable {
  private static let queue = DispatchQueue(label: "swift-operation.terminal")
  /// The feed that is in progress.
  private static let current = LastElement<TerminalFeed>()
  /// Never cancelled: it wakes the queue for all feeds. `nil` before the first one, and as long as the process
  /// has no descriptors left.
  private static let source = Mutex<(any DispatchSourceRead)?>(nil)

  private let notify: @Sendable (ApplicationActivity) -> Void
  /// The record that was read last; used on the queue only.
  private let last: Atomic<UInt64>

  private init(_ notify: @escaping @Sendable (ApplicationActivity) -> Void) {
    self.notify = notify
    last = Atomic(TerminalSignals.record.rawValue)
  }

  /// Calls `notify` with the present activity, and on a queue with each later one, until the
  /// subscription is cancelled. One feed is in progress at a time.
  @Sendable
  static func begin(
    _ notify: @escaping @Sendable (ApplicationActivity) -> Void
  ) -> OperationSubscription {
    notify(TerminalSignals.record.activity)
    let hasSource = source.withLock { source in
      if source == nil { source = makeSource() }
      return source != nil
    }
    guard hasSource else {
      OperationIssue.report(
        .unavailableSource,
        "There are no descriptors left to wait for the signals of the terminal; no change "
          + "of activity is reported.")
      return .empty
    }
    current.set(TerminalFeed(notify))
    TerminalSignals.install()
    return OperationSubscription {
      TerminalSignals.restore()
      current.set(nil)
    }
  }

  private static func makeSource() -> sending (any DispatchSourceRead)? {
    guard let descriptor = TerminalSignals.makeDescriptor() else { return nil }
    let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
    source.setEventHandler {
      TerminalSignals.clearDescriptor()
      current.value?.read()
    }
    source.activate()
    return source
  }

  private func read() {
    let record = TerminalSignals.record
    let earlier = StopRecord(rawValue: last.exchange(record.rawValue, ordering: .relaxed))
    for activity in record.activities(since: earlier) { notify(activity) }
    TerminalSignals.acknowledge(record)
  }
}
