public import ReactiveStreams

/// The activity of the program: in the foreground, or suspended.
public enum ApplicationActivity: String, Sendable, Hashable, Codable {
  /// The program runs, also as a job in the background of its shell or without a terminal.
  case foreground
  /// The program is suspended: between `SIGTSTP` and `SIGCONT`.
  case background
}

/// A source of the program's activity and its changes.
///
/// ``TerminalActivityObserver`` follows the signals of the terminal,
/// ``ManualApplicationActivityObserver`` is set by hand. The library uses the observer of the context,
/// ``OperationContext/applicationActivityObserver``.
public protocol ApplicationActivityObserver: Sendable {
  /// The present activity. It may be read on any thread; no lock is held.
  var currentActivity: ApplicationActivity { get }

  /// Calls `handler` with each later change, until the subscription ends.
  ///
  /// The calls come one at a time, in the order of the changes, on any thread and with no lock held.
  /// To miss no change, subscribe first, and read ``currentActivity`` then.
  func subscribe(
    _ handler: @escaping @Sendable (ApplicationActivity) -> Void
  ) -> OperationSubscription
}

/// An activity that is set by hand, for tests and for programs with another source of it.
public final class ManualApplicationActivityObserver: ApplicationActivityObserver {
  private let activity: ObservedValue<ApplicationActivity>

  /// Creates an observer without subscribers.
  ///
  /// - Parameter activity: The activity until the first ``set(_:)``; the foreground by default.
  public init(activity: ApplicationActivity = .foreground) {
    self.activity = ObservedValue(activity)
  }

  /// The activity that was set last.
  public var currentActivity: ApplicationActivity { activity.value }

  /// The number of subscribed handlers.
  public var subscriberCount: Int { activity.subscriberCount }

  /// Sets the activity, and notifies all subscribers if it differs from the one before.
  ///
  /// Returns when all handlers have been called. If a delivery is in progress, this change is
  /// delivered right after it, on the thread that delivers.
  public func set(_ activity: ApplicationActivity) { self.activity.set(activity) }

  /// Calls `handler` with each later change, on a thread that sets the activity.
  ///
  /// - Parameter handler: Called with no lock held, in the order of the changes.
  /// - Returns: The subscription, which ends with its last copy.
  public func subscribe(
    _ handler: @escaping @Sendable (ApplicationActivity) -> Void
  ) -> OperationSubscription { activity.subscribe(handler) }
}
