/// How long a client keeps a store that nobody uses.
///
/// A store is used while somebody observes it, while a run of it is scheduled or under way, and
/// while it shows an optimistic edit. `client.store(for:)` is a use of a moment; looking a store up
/// by its path is none. A store that leaves the client goes on serving those who hold it; the next
/// who asks for its path gets a new one.
public struct OperationRetention: Sendable, Hashable {
  /// How long after its last use a store stays; infinite without an end. Each store keeps that, and
  /// it takes a third of what a `Duration?` does.
  let seconds: Double
  private var most = Int.max

  /// How many unused stores stay at most.
  var limit: Int? { most == .max ? nil : most }

  /// A store stays until nobody has used it for `duration`.
  ///
  /// The time begins anew when the system's clock is set back.
  ///
  /// - Parameter duration: A negative one is reported and taken as zero, which is ``whileUsed``, one
  ///   of more than a hundred years as these.
  public static func unusedFor(_ duration: Duration) -> OperationRetention {
    OperationRetention(seconds: duration.checked(for: "The time of retention").inSeconds)
  }

  /// A store leaves with its last use; one that was made and never used stays a minute.
  public static let whileUsed = OperationRetention(seconds: 0)
  /// A store stays until it is cleared.
  public static let forever = OperationRetention(seconds: .infinity)

  init(seconds: Double) {
    self.seconds = seconds
  }

  /// The same, with at most `count` unused stores in the client; the least recently used ones leave
  /// first. Stores that are retained for ever do not count.
  ///
  /// It is a rule for a whole client; on one request it has no effect.
  ///
  /// - Parameter count: How many; a negative number is reported and taken as zero.
  public func limited(to count: Int) -> OperationRetention {
    var limited = self
    limited.most = count.checkedCount(for: "The number of unused stores")
    return limited
  }

  /// The longer one of both.
  static func longest(
    _ one: OperationRetention?, _ other: OperationRetention?
  ) -> OperationRetention? {
    guard let one, let other else { return one ?? other }
    return other.isLonger(than: one) ? other : one
  }

  func isLonger(than other: OperationRetention) -> Bool { seconds > other.seconds }

  /// How many seconds after its last use a store stays that nobody tells to go; `nil` without an end.
  var patience: Double? {
    if isEndless { return nil }
    return endsWithUse ? 60 : seconds
  }

  /// Whether a store leaves as soon as it is not used.
  var endsWithUse: Bool { seconds == 0 }

  /// Whether a store stays until it is cleared.
  var isEndless: Bool { seconds == .infinity }
}
