import Synchronization

/// Tells tasks and runs of one process apart; later ones have greater identifiers.
public struct OperationTaskID: Sendable, Hashable, Comparable, CustomStringConvertible {
  private static let last = Atomic<UInt64>(0)

  let rawValue: UInt64

  /// Creates an identifier that no other task has.
  @usableFromInline static func next() -> OperationTaskID {
    OperationTaskID(rawValue: last.wrappingAdd(1, ordering: .relaxed).newValue)
  }

  /// Tells whether `lhs` was made before `rhs`.
  public static func < (lhs: OperationTaskID, rhs: OperationTaskID) -> Bool {
    lhs.rawValue < rhs.rawValue
  }

  /// A hash sign and a number.
  public var description: String { "#\(rawValue)" }
}
