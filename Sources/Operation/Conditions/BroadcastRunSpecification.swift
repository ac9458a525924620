public import ReactiveStreams

/// A condition that holds while what a broadcast sent last is true.
///
/// It listens for as long as it or a subscription of it is there, so that it holds what was sent
/// last even if nobody has subscribed. It does not keep the broadcast alive.
public struct BroadcastRunSpecification: OperationRunSpecification {
  private let value: ObservedValue<Bool>
  private let listening: OperationSubscription

  init(_ broadcast: Broadcast<Bool>, initially: Bool) {
    let value = ObservedValue(initially)
    self.value = value
    listening = broadcast.subscribe { value.set($0) }
  }

  /// Gives what was sent last.
  public func isSatisfied(in context: OperationContext) -> Bool { value.value }

  /// Calls `onChange` when something is sent that differs from what was sent before.
  public func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    let subscription = value.subscribe { _ in onChange() }
    return OperationSubscription { [listening] in
      withExtendedLifetime(listening) { subscription.cancel() }
    }
  }
}

extension OperationRunSpecification where Self == BroadcastRunSpecification {
  /// A condition that holds while what a broadcast has sent last, since now, is true.
  ///
  /// - Parameters:
  ///   - broadcast: Where the values come from.
  ///   - initially: Whether the condition holds before the first value.
  public static func latest(of broadcast: Broadcast<Bool>, initially: Bool = false) -> Self {
    BroadcastRunSpecification(broadcast, initially: initially)
  }
}
