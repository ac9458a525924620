/// A rule for how long a client retains a store that is not in use.
///
/// A store is in use while it has subscribers, while a run of it is scheduled or in flight, and while
/// it displays a pending optimistic edit. A call of `client.store(for:)` is a use of that instant; a
/// look-up by path is not a use. A store that is evicted continues to work for its owners. As long as it
/// is referenced, its path has no other store: look-ups find it, and its next use makes the client
/// retain it again.
///
/// If several requests share a store, the longest of their retentions applies.
public struct OperationRetention: Sendable, Hashable {
  /// How many nanoseconds after its last use a store is evicted: zero with its last use, the greatest
  /// number never.
  let nanoseconds: Int64
  /// The greatest number of unused stores that the client retains; `nil` without a limit.
  private(set) var limit: Int?

  /// Evicts a store when it has not been used for `duration`.
  ///
  /// The time is ``OperationClock/elapsed()`` of the client's clock, so a change of the date does not
  /// affect it. ``SystemClock`` is the exception: its time is measured to some milliseconds, and without the
  /// time for which the machine is suspended, which its `elapsed()` includes.
  ///
  /// - Parameter duration: The time since the last use. Zero is ``whileUsed``. A negative duration is
  ///   reported and taken as zero; the longest one is a hundred years.
  public static func unusedFor(_ duration: Duration) -> OperationRetention {
    OperationRetention(
      nanoseconds: duration.checked(for: "The time of retention").inNanoseconds)
  }

  /// A rule that evicts a store when its last use ends, or, if that was only a call of
  /// `client.store(for:)`, one minute after it.
  public static let whileUsed = OperationRetention(nanoseconds: 0)
  /// A rule that retains a store until it is cleared.
  public static let forever = OperationRetention(nanoseconds: .max)

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

  func isLonger(than other: OperationRetention) -> Bool { nanoseconds > other.nanoseconds }

  var isForever: Bool { nanoseconds == .max }
  var isWhileUsed: Bool { nanoseconds == 0 }

  /// How long after its last use a store is evicted; `nil` for never.
  var duration: Duration? { isForever ? nil : .nanoseconds(nanoseconds) }

  /// How long after its last use the client checks whether it evicts the store; `nil` if it never
  /// does. With ``whileUsed`` this is for stores that are never used.
  var evictionDelay: Duration? { isWhileUsed ? .seconds(60) : duration }
}
