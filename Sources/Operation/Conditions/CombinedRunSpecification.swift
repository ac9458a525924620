public import ReactiveStreams

/// A condition that is made of one or two other conditions.
public struct CombinedRunSpecification: OperationRunSpecification {
  fileprivate let parts: [any OperationRunSpecification]
  fileprivate let isSatisfied: @Sendable ([Bool]) -> Bool

  /// Returns a Boolean value that indicates whether the condition is satisfied. It evaluates every
  /// part.
  public func isSatisfied(in context: OperationContext) -> Bool {
    isSatisfied(parts.map { $0.isSatisfied(in: context) })
  }

  /// Calls `onChange` whenever one of the parts may have changed.
  ///
  /// - Parameters:
  ///   - context: The context of the store whose runs depend on the condition.
  ///   - onChange: Called on any thread, with no lock held.
  public func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    .combined(parts.map { $0.subscribe(in: context, onChange: onChange) })
  }
}

extension OperationRunSpecification {
  /// Returns a condition that is satisfied while both conditions are.
  public static func && (
    lhs: Self, rhs: some OperationRunSpecification
  ) -> CombinedRunSpecification {
    CombinedRunSpecification(parts: [lhs, rhs]) { $0.allSatisfy { $0 } }
  }

  /// Returns a condition that is satisfied while at least one of two conditions is.
  public static func || (
    lhs: Self, rhs: some OperationRunSpecification
  ) -> CombinedRunSpecification {
    CombinedRunSpecification(parts: [lhs, rhs]) { $0.contains(true) }
  }

  /// Returns a condition that is satisfied while another one is not.
  public static prefix func ! (condition: Self) -> CombinedRunSpecification {
    CombinedRunSpecification(parts: [condition]) { !$0.contains(true) }
  }
}
