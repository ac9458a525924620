import Synchronization

/// How far the shutdown of a client is.
final class ShutdownPhase: Sendable {
  private enum Phase {
    static let open = 0
    /// No run is started any more, and those in flight continue.
    static let closed = 1
    /// The runs that have not ended in time are cancelled.
    static let cutOff = 2
  }

  private let phase = Atomic(Phase.open)

  /// Whether no run is started any more.
  var isClosed: Bool { phase.load(ordering: .acquiring) != Phase.open }

  /// Whether a shutdown cancels the runs that have not ended in time, or has.
  var isCutOff: Bool { phase.load(ordering: .acquiring) == Phase.cutOff }

  func begin() { phase.max(Phase.closed, ordering: .acquiringAndReleasing) }

  func cutOff() { phase.max(Phase.cutOff, ordering: .acquiringAndReleasing) }
}
