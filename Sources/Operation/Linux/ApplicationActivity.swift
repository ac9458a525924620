public import ReactiveStreams

/// Whether somebody has the program before them.
public enum ApplicationActivity: String, Sendable, Hashable, Codable {
  /// The program has the terminal, or has none and runs.
  case foreground
  /// The program is stopped, or runs behind another one in its terminal.
  case background
}

/// Knows whether the program is in the foreground, and tells when that changes.
public protocol ApplicationActivityObserver: Sendable {
  /// Where the program is now.
  var currentActivity: ApplicationActivity { get }

  /// Calls `handler` with every change from now on, in their order, on any thread and with no lock
  /// held.
  func subscribe(
    _ handler: @escaping @Sendable (ApplicationActivity) -> Void
  ) -> OperationSubscription
}

/// An observer that says what it is told to, for tests and for programs that know better.
public final class ManualApplicationActivityObserver: ApplicationActivityObserver {
  private let activity: ObservedValue<ApplicationActivity>

  /// Creates an observer that says `activity` until it is told otherwise.
  public init(activity: ApplicationActivity = .foreground) {
    self.activity = ObservedValue(activity)
  }

  /// What was set last.
  public var currentActivity: ApplicationActivity { activity.value }

  /// How many handlers listen.
  public var subscriberCount: Int { activity.subscriberCount }

  /// Changes the activity, and tells everyone who subscribed, unless it is the same.
  public func set(_ activity: ApplicationActivity) {
    self.activity.set(activity)
  }

  /// Calls `handler` with every change from now on.
  public func subscribe(
    _ handler: @escaping @Sendable (ApplicationActivity) -> Void
  ) -> OperationSubscription {
    activity.subscribe(handler)
  }
}

extension OperationContext {
  /// Knows whether the program is in the foreground; ``TerminalActivityObserver/shared`` unless
  /// written.
  public var applicationActivityObserver: any ApplicationActivityObserver {
    get { self[ApplicationActivityObserverKey.self] }
    set { self[ApplicationActivityObserverKey.self] = newValue }
  }

  private enum ApplicationActivityObserverKey: Key {
    static var defaultValue: any ApplicationActivityObserver { TerminalActivityObserver.shared }
  }
}
