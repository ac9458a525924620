import Synchronization

/// How far the shutdown of a client is.
final class ShutdownPhase: Sendable {
  private let hasBegun = Atomic(false)
  private let hasCutOff = Atomic(false)

  /// Whether no run is started any more. Those in flight continue.
  var isClosed: Bool { hasBegun.load(ordering: .acquiring) }

  /// Whether a shutdown cancels the runs that have not ended in time, or has.
  var isCutOff: Bool { hasCutOff.load(ordering: .acquiring) }

  func begin() { hasBegun.store(true, ordering: .releasing) }

  /// Called after the shutdown has begun.
  func cutOff() { hasCutOff.store(true, ordering: .releasing) }
}
