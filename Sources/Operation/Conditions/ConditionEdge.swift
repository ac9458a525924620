import Synchronization

/// Finds out when a condition becomes satisfied.
///
/// One thread evaluates the condition at a time, and again for what has changed meanwhile: so a result is
/// never older than the one before it. The lock guards the machine; the condition is called without it.
final class ConditionEdge: Sendable {
  private let machine = Mutex(ConditionEdgeMachine())

  /// Evaluates the condition, unless another thread does. Calls `onEdge` when it has become satisfied.
  func check(_ isSatisfied: () -> Bool, onEdge: () -> Void) {
    guard machine.withLock({ $0.begin() }) else { return }
    while true {
      let isSatisfied = isSatisfied()
      let (isEdge, mustRepeat) = machine.withLock { $0.end(isSatisfied) }
      if isEdge { onEdge() }
      if !mustRepeat { return }
    }
  }
}

/// The machine of ``ConditionEdge``. The first result is no edge.
struct ConditionEdgeMachine: Sendable {
  private enum Phase: Sendable {
    case idle, evaluating
    /// The condition may have changed since its evaluation began.
    case outdated
  }

  private var phase = Phase.idle
  private var last: Bool?

  /// The condition may have changed. Returns whether the caller evaluates it.
  mutating func begin() -> Bool {
    defer { phase = phase == .idle ? .evaluating : .outdated }
    return phase == .idle
  }

  /// The condition was evaluated.
  mutating func end(_ isSatisfied: Bool) -> (isEdge: Bool, mustRepeat: Bool) {
    let isEdge = isSatisfied && last == false
    last = isSatisfied
    let mustRepeat = phase == .outdated
    phase = mustRepeat ? .evaluating : .idle
    return (isEdge, mustRepeat)
  }
}
