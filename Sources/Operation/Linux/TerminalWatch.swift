import Dispatch
import Glibc
import ReactiveStreams
import Synchronization

/// Tells of what the handlers of the signals have noted, from a thread that waits for them.
final class TerminalWatch: Sendable {
  private static let queue = DispatchQueue(label: "swift-operation.terminal")

  private let isOver = Atomic(false)
  private let tell: @Sendable (ApplicationActivity) -> Void

  private init(_ tell: @escaping @Sendable (ApplicationActivity) -> Void) {
    self.tell = tell
  }

  /// Takes the signals, until the subscription is cancelled; one at a time.
  @Sendable
  static func begin(
    _ tell: @escaping @Sendable (ApplicationActivity) -> Void
  ) -> OperationSubscription {
    let watch = TerminalWatch(tell)
    let start = TerminalSignals.note
    guard let thread = WatchThread({ watch.run(from: start) }) else {
      OperationIssue(
        kind: .unavailableSource,
        message: "There is no thread left to watch the terminal; no change of activity is told."
      ).report()
      return .empty
    }
    TerminalSignals.take()
    return OperationSubscription {
      TerminalSignals.putBack()
      watch.isOver.store(true, ordering: .releasing)
      TerminalSignals.ring()
      thread.join()
    }
  }

  private func run(from start: TerminalNote) {
    var reader = TerminalNoteReader(start: start)
    // The first look comes before the first wait: somebody else may have measured before it.
    while !isOver.load(ordering: .acquiring) {
      let note = TerminalSignals.note
      let changes = reader.read(note, measured: TerminalActivityObserver.measured(note))
      // On a queue: this thread is waited for by those who cancel, who may hold up a handler.
      Self.queue.async { [tell] in
        for change in changes { tell(change) }
        TerminalSignals.acknowledge(note)
      }
      TerminalSignals.wait(forASecond: reader.activity == .background)
    }
  }
}

/// What the handlers of the signals note: how often the program was stopped, and whether that is
/// over.
struct TerminalNote: Sendable {
  private(set) var rawValue: UInt64 = 0b01

  var stopCount: UInt64 { rawValue >> 2 }
  /// Whether the program has been continued after the last stop.
  var isContinued: Bool { rawValue & 0b01 != 0 }
  /// Whether it runs, after the last stop or because that was not to be.
  var isRunning: Bool { rawValue & 0b11 != 0 }

  /// The program is about to be stopped.
  mutating func stop() {
    rawValue = (stopCount + 1) << 2
  }

  /// The attempt to stop it has returned.
  mutating func stopReturned() {
    rawValue |= 0b10
  }

  /// It was continued; if no stop was noted, it was stopped by a signal that nobody caught.
  mutating func continued() {
    if isContinued { stop() }
    rawValue |= 0b01
  }
}

/// Makes changes of activity out of notes.
struct TerminalNoteReader: Sendable {
  private var stopCount: UInt64
  private(set) var activity = ApplicationActivity.foreground

  init(start: TerminalNote) {
    stopCount = start.stopCount
  }

  /// Gives the activities that follow each other since the last look.
  mutating func read(
    _ note: TerminalNote, measured: ApplicationActivity
  ) -> [ApplicationActivity] {
    let isStopped = note.stopCount != stopCount && measured != .background
    stopCount = note.stopCount
    activity = measured
    return isStopped ? [.background, measured] : [measured]
  }
}
