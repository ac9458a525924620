public import ReactiveStreams

/// A condition that holds while the last value of a sequence is true.
///
/// One task follows the sequence, from the first subscription on, whoever and however many
/// subscribe, and is cancelled with the last; with the next one, the sequence begins anew. Between,
/// the condition stays as it was last. A sequence that ends, or fails, leaves it as it is, too.
public struct SequenceRunSpecification: OperationRunSpecification {
  private let value: ObservedValue<Bool>

  init<Values: AsyncSequence & Sendable>(_ values: Values, initially: Bool)
  where Values.Element == Bool {
    let feed: ObservedValue<Bool>.Feed = { tell in
      // Detached, because it does not belong to whoever happens to subscribe first.
      let task = Task.detached {
        do {
          for try await value in values { tell(value) }
        } catch {
          return
        }
      }
      return OperationSubscription { task.cancel() }
    }
    value = ObservedValue(initially, feed: feed)
  }

  /// Gives the last value that came.
  public func isSatisfied(in context: OperationContext) -> Bool { value.value }

  /// Calls `onChange` when a value comes that differs from the one before.
  public func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    value.subscribe { _ in onChange() }
  }
}

extension OperationRunSpecification where Self == SequenceRunSpecification {
  /// A condition that holds while the last value of a sequence is true.
  ///
  /// ```swift
  /// let query = AccountQuery().rerunOnChange(of: .following(session.states.map(\.isLoggedIn)))
  /// ```
  ///
  /// - Parameters:
  ///   - sequence: Iterated while somebody subscribes; again, if somebody does so again.
  ///   - initially: Whether the condition holds before the first value.
  public static func following<Values: AsyncSequence & Sendable>(
    _ sequence: Values, initially: Bool = false
  ) -> Self where Values.Element == Bool {
    SequenceRunSpecification(sequence, initially: initially)
  }
}
