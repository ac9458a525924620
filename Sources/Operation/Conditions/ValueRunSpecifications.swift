public import ReactiveStreams

/// A condition that is satisfied while the last element of a broadcast is `true`.
///
/// The condition subscribes to the broadcast when it is created, and the subscription lasts as long as
/// the condition or a subscription of it. It does not keep the broadcast alive.
public struct BroadcastRunSpecification: OperationRunSpecification, Equatable {
  private let value: ObservedValue<Bool>
  private let subscription: OperationSubscription

  init(_ broadcast: Broadcast<Bool>, initially: Bool) {
    let value = ObservedValue(initially)
    self.value = value
    subscription = broadcast.subscribe { value.set($0) }
  }

  /// Returns a Boolean value that indicates whether both are copies of one condition.
  public static func == (lhs: Self, rhs: Self) -> Bool { lhs.value === rhs.value }

  /// Returns the last element of the broadcast, or the initial value before the first one.
  public func isSatisfied(in context: OperationContext) -> Bool { value.value }

  /// Calls `onChange` when an element differs from the one before it.
  ///
  /// - Parameters:
  ///   - context: The context of the store whose runs depend on the condition.
  ///   - onChange: Called on any thread, with no lock held.
  public func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    let changes = value.subscribe { _ in onChange() }
    return OperationSubscription { [subscription] in
      withExtendedLifetime(subscription) { changes.cancel() }
    }
  }
}

/// A condition that is satisfied while the last element of an asynchronous sequence is `true`.
///
/// One detached task iterates over the sequence while the condition has subscribers. It is started for
/// the first subscriber and cancelled after the last one; the next subscriber iterates over the
/// sequence again. The condition keeps its value in between, and when the sequence ends or throws.
public struct SequenceRunSpecification: OperationRunSpecification, Equatable {
  private let value: ObservedValue<Bool>

  init<Values: AsyncSequence & Sendable>(_ values: Values, initially: Bool)
  where Values.Element == Bool {
    value = ObservedValue(initially) { set in
      // Detached, so that it does not inherit task-local values of the first subscriber.
      let task = Task.detached { for try await value in values { set(value) } }
      return OperationSubscription { task.cancel() }
    }
  }

  /// Returns a Boolean value that indicates whether both are copies of one condition.
  public static func == (lhs: Self, rhs: Self) -> Bool { lhs.value === rhs.value }

  /// Returns the last element of the sequence, or the initial value before the first one.
  public func isSatisfied(in context: OperationContext) -> Bool { value.value }

  /// Calls `onChange` when an element differs from the one before it.
  ///
  /// - Parameters:
  ///   - context: The context of the store whose runs depend on the condition.
  ///   - onChange: Called on any thread, with no lock held.
  public func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription { value.subscribe { _ in onChange() } }
}

/// A condition that is always satisfied, or never.
public struct ConstantRunSpecification: OperationRunSpecification, Equatable {
  fileprivate let value: Bool

  /// Returns the constant.
  public func isSatisfied(in context: OperationContext) -> Bool { value }

  /// Never calls `onChange`.
  ///
  /// - Returns: An empty subscription.
  public func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription { .empty }
}

extension OperationRunSpecification where Self == BroadcastRunSpecification {
  /// Returns a condition that is satisfied while the last element of a broadcast is `true`.
  ///
  /// - Parameters:
  ///   - broadcast: The broadcast. Elements that it sent before this call are not seen.
  ///   - initially: The value before the first element; `false` by default.
  public static func latest(of broadcast: Broadcast<Bool>, initially: Bool = false) -> Self {
    BroadcastRunSpecification(broadcast, initially: initially)
  }
}

extension OperationRunSpecification where Self == SequenceRunSpecification {
  /// Returns a condition that is satisfied while the last element of a sequence is `true`.
  ///
  /// ```swift
  /// let query = AccountQuery().rerunOnChange(of: .following(session.states.map(\.isLoggedIn)))
  /// ```
  ///
  /// - Parameters:
  ///   - sequence: The sequence. It is iterated over while the condition has subscribers, and again
  ///     from its start when there are subscribers again.
  ///   - initially: The value before the first element; `false` by default.
  public static func following<Values: AsyncSequence & Sendable>(
    _ sequence: Values, initially: Bool = false
  ) -> Self where Values.Element == Bool {
    SequenceRunSpecification(sequence, initially: initially)
  }
}

extension OperationRunSpecification where Self == ConstantRunSpecification {
  /// A condition that is always satisfied.
  public static var always: Self { ConstantRunSpecification(value: true) }
  /// A condition that is never satisfied.
  public static var never: Self { ConstantRunSpecification(value: false) }
}
