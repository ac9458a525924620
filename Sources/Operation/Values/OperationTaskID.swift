import Synchronization

/// Tells tasks and runs of one process apart; later ones have greater identifiers.
public struct OperationTaskID: Sendable, Hashable, Comparable, CustomStringConvertible {
  private static let last = Atomic<UInt64>(0)

  @usableFromInline let rawValue: UInt64

  /// Creates an identifier that no other task has.
  @usableFromInline static func next() -> OperationTaskID {
    OperationTaskID(rawValue: last.wrappingAdd(1, ordering: .relaxed).newValue)
  }

  /// Tells whether `lhs` was made before `rhs`.
  @inlinable public static func < (lhs: OperationTaskID, rhs: OperationTaskID) -> Bool {
    lhs.rawValue < rhs.rawValue
  }

  /// A hash sign and a number.
  public var description: String { "#\(rawValue)" }

  /// An identifier as the key of a table that each run goes through: it is hashed as an integer is,
  /// without a hasher.
  @usableFromInline struct Key: Sendable, Hashable {
    @usableFromInline let id: OperationTaskID

    @inlinable init(_ id: OperationTaskID) {
      self.id = id
    }

    @inlinable func _rawHashValue(seed: Int) -> Int { id.rawValue._rawHashValue(seed: seed) }
  }
}
