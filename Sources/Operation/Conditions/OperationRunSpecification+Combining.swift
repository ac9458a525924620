public import ReactiveStreams

/// A condition made of another one, or of two.
public struct CombinedRunSpecification: OperationRunSpecification {
  private let parts: [any OperationRunSpecification]
  private let isSatisfied: @Sendable ([Bool]) -> Bool

  init(
    _ parts: [any OperationRunSpecification], isSatisfied: @escaping @Sendable ([Bool]) -> Bool
  ) {
    self.parts = parts
    self.isSatisfied = isSatisfied
  }

  /// Tells whether the condition holds.
  public func isSatisfied(in context: OperationContext) -> Bool {
    isSatisfied(parts.map { $0.isSatisfied(in: context) })
  }

  /// Calls `onChange` whenever one of the parts may have changed.
  public func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    .combined(parts.map { $0.subscribe(in: context, onChange: onChange) })
  }
}

extension OperationRunSpecification {
  /// A condition that holds when both hold.
  public static func && (
    lhs: Self, rhs: some OperationRunSpecification
  ) -> CombinedRunSpecification {
    CombinedRunSpecification([lhs, rhs]) { $0.allSatisfy { $0 } }
  }

  /// A condition that holds when one of both holds.
  public static func || (
    lhs: Self, rhs: some OperationRunSpecification
  ) -> CombinedRunSpecification {
    CombinedRunSpecification([lhs, rhs]) { $0.contains(true) }
  }

  /// A condition that holds when another one does not.
  public static prefix func ! (condition: Self) -> CombinedRunSpecification {
    CombinedRunSpecification([condition]) { !$0.contains(true) }
  }
}

/// A condition that always holds, or never does.
public struct ConstantRunSpecification: OperationRunSpecification {
  private let value: Bool

  init(_ value: Bool) {
    self.value = value
  }

  /// Tells whether the condition holds.
  public func isSatisfied(in context: OperationContext) -> Bool { value }

  /// Never calls `onChange`.
  public func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    .empty
  }
}

extension OperationRunSpecification where Self == ConstantRunSpecification {
  /// A condition that always holds.
  public static var always: Self { ConstantRunSpecification(true) }
  /// A condition that never holds.
  public static var never: Self { ConstantRunSpecification(false) }
}
