/// How long a client retains a store that is not in use.
///
/// A store is in use while it has subscribers, while a run of it is scheduled or in flight, and while
/// it displays a pending optimistic edit. A call of `client.store(for:)` is a use of that instant; a
/// look-up by path is not a use. A store that is evicted continues to work for its owners, and the
/// next `client.store(for:)` for its path creates a new store.
///
/// If several requests share a store, the longest of their retentions applies.
public struct OperationRetention: Sendable, Hashable {
  /// How many seconds after its last use a store is evicted: zero with its last use, infinity never.
  let seconds: Double
  /// The greatest number of unused stores that the client retains; `nil` without a limit.
  private(set) var limit: Int?

  init(seconds: Double) { self.seconds = seconds }

  /// Evicts a store when it has not been used for `duration`.
  ///
  /// The time is that of the client's clock. It starts again when that clock is set back.
  ///
  /// - Parameter duration: The time since the last use. Zero is ``whileUsed``. A negative duration is
  ///   reported and taken as zero; the longest one is a hundred years.
  public static func unusedFor(_ duration: Duration) -> OperationRetention {
    OperationRetention(seconds: duration.checked(for: "The time of retention").inSeconds)
  }

  /// Evicts a store when its last use ends, or one minute after its creation if it is never used.
  public static let whileUsed = OperationRetention(seconds: 0)
  /// Retains a store until it is cleared.
  public static let forever = OperationRetention(seconds: .infinity)

  /// Returns this retention with at most `count` unused stores in the client.
  ///
  /// When there are more, the client evicts the least recently used ones. Stores that are retained
  /// ``forever`` do not count. The limit applies to a whole client, and has no effect on a request.
  ///
  /// - Parameter count: The number of unused stores. A negative number is reported and taken as zero.
  public func limited(to count: Int) -> OperationRetention {
    var limited = self
    limited.limit = count.checkedCount(for: "The number of unused stores")
    return limited
  }

  /// Returns the longer retention of two.
  static func longest(
    _ one: OperationRetention?, _ other: OperationRetention?
  ) -> OperationRetention? {
    guard let one, let other else { return one ?? other }
    return other.isLonger(than: one) ? other : one
  }

  func isLonger(than other: OperationRetention) -> Bool { seconds > other.seconds }

  var isForever: Bool { seconds == .infinity }
  var isWhileUsed: Bool { seconds == 0 }

  /// How many seconds after its last use the client checks whether it evicts the store; `nil` if it
  /// never does. With ``whileUsed`` this is for stores that are never used.
  var evictionDelay: Double? {
    if isForever { return nil }
    return isWhileUsed ? 60 : seconds
  }
}
