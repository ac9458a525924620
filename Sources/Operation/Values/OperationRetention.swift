/// How long a client keeps a store that nobody uses.
///
/// A store is used while somebody observes it, while a run of it is scheduled or under way, and
/// while it shows an optimistic edit. `client.store(for:)` is a use of a moment; looking a store up
/// by its path is none. A store that leaves the client goes on serving those who hold it; the next
/// who asks for its path gets a new one.
public struct OperationRetention: Sendable, Hashable {
  /// How long after its last use a store stays; `nil` without an end.
  let duration: Duration?
  /// How many unused stores stay at most.
  private(set) var limit: Int?

  /// A store stays until nobody has used it for `duration`.
  ///
  /// The time begins anew when the clock is set back.
  ///
  /// - Parameter duration: A negative one is reported and taken as zero, which is ``whileUsed``, one
  ///   of more than a hundred years as these.
  public static func unusedFor(_ duration: Duration) -> OperationRetention {
    OperationRetention(duration: duration.checked(for: "The time of retention"))
  }

  /// A store leaves with its last use; one that was made and never used stays a minute.
  public static let whileUsed = OperationRetention(duration: .zero)
  /// A store stays until it is cleared.
  public static let forever = OperationRetention(duration: nil)

  private init(duration: Duration?) {
    self.duration = duration
  }

  /// The same, with at most `count` unused stores in the client; the least recently used ones leave
  /// first. Stores that are retained for ever do not count.
  ///
  /// It is a rule for a whole client; on one request it has no effect.
  ///
  /// - Parameter count: How many; a negative number is reported and taken as zero.
  public func limited(to count: Int) -> OperationRetention {
    var limited = self
    limited.limit = count.checkedCount(for: "The number of unused stores")
    return limited
  }

  /// The longer one of both.
  static func longest(_ one: OperationRetention?, _ other: OperationRetention?)
    -> OperationRetention?
  {
    guard let one, let other else { return one ?? other }
    guard let first = one.duration, let second = other.duration else { return .forever }
    return first < second ? other : one
  }

  /// How long after its last use a store stays that nobody tells to go.
  var patience: Duration? {
    duration.map { $0 == .zero ? .seconds(60) : $0 }
  }

  /// Whether a store leaves as soon as it is not used.
  var endsWithUse: Bool { duration == .zero }
}
