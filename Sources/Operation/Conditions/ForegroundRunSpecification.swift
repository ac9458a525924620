public import ReactiveStreams

/// A condition that holds while the program is in the foreground.
///
/// Where that is known from is the context's ``OperationContext/applicationActivityObserver``.
public struct ForegroundRunSpecification: OperationRunSpecification {
  /// Tells whether the program is in the foreground.
  public func isSatisfied(in context: OperationContext) -> Bool {
    context.applicationActivityObserver.currentActivity == .foreground
  }

  /// Calls `onChange` when the program comes to the foreground, or leaves it.
  public func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    context.applicationActivityObserver.subscribe { _ in onChange() }
  }
}

extension OperationRunSpecification where Self == ForegroundRunSpecification {
  /// A condition that holds while the program is in the foreground.
  public static var foreground: Self { ForegroundRunSpecification() }
}
