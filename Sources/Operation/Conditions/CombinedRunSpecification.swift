public import ReactiveStreams

/// A condition that is made of one or two other conditions.
public struct CombinedRunSpecification: OperationRunSpecification, Equatable {
  fileprivate enum Rule: Sendable {
    case all, any, none
  }

  fileprivate let parts: [any OperationRunSpecification]
  fileprivate let rule: Rule

  /// Returns a Boolean value that indicates whether both are combined in one way, of parts that are not known
  /// to differ.
  public static func == (lhs: Self, rhs: Self) -> Bool {
    lhs.rule == rhs.rule && !zip(lhs.parts, rhs.parts).contains { areDifferent($0, $1) }
  }

  /// Returns a Boolean value that indicates whether the condition is satisfied. It evaluates every
  /// part.
  public func isSatisfied(in context: OperationContext) -> Bool {
    let satisfied = parts.map { $0.isSatisfied(in: context) }
    return switch rule {
    case .all: !satisfied.contains(false)
    case .any: satisfied.contains(true)
    case .none: !satisfied.contains(true)
    }
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
  ) -> CombinedRunSpecification { CombinedRunSpecification(parts: [lhs, rhs], rule: .all) }

  /// Returns a condition that is satisfied while at least one of two conditions is.
  public static func || (
    lhs: Self, rhs: some OperationRunSpecification
  ) -> CombinedRunSpecification { CombinedRunSpecification(parts: [lhs, rhs], rule: .any) }

  /// Returns a condition that is satisfied while another one is not.
  public static prefix func ! (condition: Self) -> CombinedRunSpecification {
    CombinedRunSpecification(parts: [condition], rule: .none)
  }
}
