public import ReactiveStreams

/// A condition that runs depend on: whether it holds, and when that may have changed.
///
/// ```swift
/// struct LoggedIn: OperationRunSpecification {
///   func isSatisfied(in context: OperationContext) -> Bool { session.isLoggedIn }
///
///   func subscribe(
///     in context: OperationContext, onChange: @escaping @Sendable () -> Void
///   ) -> OperationSubscription {
///     session.logins.subscribe { _ in onChange() }
///   }
/// }
///
/// extension OperationRunSpecification where Self == LoggedIn {
///   static var loggedIn: Self { LoggedIn() }
/// }
///
/// let query = AccountQuery().rerunOnChange(of: .loggedIn)
/// ```
public protocol OperationRunSpecification: Sendable {
  /// Tells whether the condition holds; called with no lock held.
  func isSatisfied(in context: OperationContext) -> Bool

  /// Calls `onChange`, on any thread, whenever the condition may hold or not hold anew.
  func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription
}
