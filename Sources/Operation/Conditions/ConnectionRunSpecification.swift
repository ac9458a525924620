public import ReactiveStreams

/// A condition that holds while there is a connection, as far as the context's observer knows.
///
/// ```swift
/// let query = InboxQuery().rerunOnChange(of: .connected)
/// ```
public struct ConnectionRunSpecification: OperationRunSpecification {
  /// Creates the condition.
  public init() {}

  /// Tells whether there is a connection.
  public func isSatisfied(in context: OperationContext) -> Bool {
    context.networkObserver.currentStatus == .connected
  }

  /// Calls `onChange` whenever the connection comes or goes.
  public func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    context.networkObserver.subscribe { _ in onChange() }
  }
}

extension OperationRunSpecification where Self == ConnectionRunSpecification {
  /// A condition that holds while there is a connection; the context's
  /// ``OperationContext/networkObserver`` says so.
  public static var connected: Self { ConnectionRunSpecification() }
}
