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
    case idle
    /// - Parameter mustRepeat: Whether the condition may have changed since.
    case evaluating(mustRepeat: Bool)
  }

  private var phase = Phase.idle
  private var last: Bool?

  /// The condition may have changed. Returns whether the caller evaluates it.
  mutating func begin() -> Bool {
    if case .evaluating = phase {
      phase = .evaluating(mustRepeat: true)
      return false
    }
    phase = .evaluating(mustRepeat: false)
    return true
  }

  /// The condition was evaluated.
  mutating func end(_ isSatisfied: Bool) -> (isEdge: Bool, mustRepeat: Bool) {
    let isEdge = isSatisfied && last == false
    last = isSatisfied
    let mustRepeat = if case .evaluating(mustRepeat: true) = phase { true } else { false }
    phase = mustRepeat ? .evaluating(mustRepeat: false) : .idle
    return (isEdge, mustRepeat)
  }
}
