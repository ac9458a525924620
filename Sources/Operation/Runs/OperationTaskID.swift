import Synchronization

/// Tells tasks and runs of one process apart; later ones have greater identifiers.
public struct OperationTaskID: Sendable, Hashable, Comparable, CustomStringConvertible {
  private static let last = Atomic<UInt64>(0)

  let rawValue: UInt64

  /// Creates an identifier that no other task has.
  static func next() -> OperationTaskID {
    OperationTaskID(rawValue: last.wrappingAdd(1, ordering: .relaxed).newValue)
  }

  /// Tells whether `lhs` was made before `rhs`.
  public static func < (lhs: OperationTaskID, rhs: OperationTaskID) -> Bool {
    lhs.rawValue < rhs.rawValue
  }

  /// A hash sign and a number.
  public var description: String { "#\(rawValue)" }

  /// The hash for a table of the standard library, of which each run goes through several: that of
  /// a multiplication, as nobody picks these numbers, and a hasher takes thirty times as long.
  public func _rawHashValue(seed: Int) -> Int {
    let product = (rawValue ^ UInt64(truncatingIfNeeded: seed))
      .multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
    return Int(truncatingIfNeeded: product.high ^ product.low)
  }
}
