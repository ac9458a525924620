public import ReactiveStreams

/// A condition that is satisfied while there is a connection.
///
/// The context's ``OperationContext/networkObserver`` observes the connection.
///
/// ```swift
/// let query = InboxQuery().rerunOnChange(of: .connected)
/// ```
public struct ConnectionRunSpecification: OperationRunSpecification, Equatable {
  /// Creates the condition.
  public init() {}

  /// Returns a Boolean value that indicates whether there is a connection.
  public func isSatisfied(in context: OperationContext) -> Bool {
    context.networkObserver.currentStatus == .connected
  }

  /// Calls `onChange` whenever the status of the connection changes.
  ///
  /// - Parameters:
  ///   - context: The context of the store whose runs depend on the condition.
  ///   - onChange: Called on any thread, with no lock held.
  public func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription { context.networkObserver.subscribe { _ in onChange() } }
}

/// A condition that is satisfied while the program is in the foreground: not suspended.
///
/// The context's ``OperationContext/applicationActivityObserver`` observes the program.
public struct ForegroundRunSpecification: OperationRunSpecification, Equatable {
  /// Returns a Boolean value that indicates whether the program is in the foreground.
  public func isSatisfied(in context: OperationContext) -> Bool {
    context.applicationActivityObserver.currentActivity == .foreground
  }

  /// Calls `onChange` when the program enters the foreground or the background.
  ///
  /// - Parameters:
  ///   - context: The context of the store whose runs depend on the condition.
  ///   - onChange: Called on any thread, with no lock held.
  public func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription { context.applicationActivityObserver.subscribe { _ in onChange() } }
}

extension OperationRunSpecification where Self == ConnectionRunSpecification {
  /// A condition that is satisfied while there is a connection, by the context's
  /// ``OperationContext/networkObserver``.
  public static var connected: Self { ConnectionRunSpecification() }
}

extension OperationRunSpecification where Self == ForegroundRunSpecification {
  /// A condition that is satisfied while the program is in the foreground, by the context's
  /// ``OperationContext/applicationActivityObserver``.
  public static var foreground: Self { ForegroundRunSpecification() }
}
