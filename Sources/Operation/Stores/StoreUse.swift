import FoundationEssentials
import Glibc
import Synchronization

/// When a store was used last, whether it is in use, and how long its client retains it.
///
/// A store is in use while it has subscribers, runs or pending edits. A look-up by request is a use
/// of an instant.
///
/// The values are atomics because the client reads them under its own lock, under which it must not
/// lock the store. The store increments ``version`` under its lock. ``retention`` and ``deadline``
/// belong to the client, and are accessed under the client's lock only.
final class StoreUse: Sendable {
  /// The beginning or the end of a use. A later change has a greater version.
  struct Change: Sendable {
    let isUsed: Bool
    let version: Int
  }

  /// The use of a store at one instant.
  struct Snapshot: Sendable {
    let version: Int
    /// Whether the store is in use, or its last use has ended and the date is not recorded yet.
    let isInUse: Bool
    let lastUse: Date
  }

  /// The number of uses that began or ended.
  private let version = Atomic(0)
  /// The version of the last end whose date is recorded.
  private let recordedVersion = Atomic(0)
  // The dates are seconds since the reference date.
  private let lastUseDate = Atomic(0.0)
  private let deadlineDate = Atomic(0.0)
  private let retentionSeconds = Atomic(0.0)
  private let reportsChanges = Atomic(false)

  var lastUse: Date {
    get { Date(timeIntervalSinceReferenceDate: lastUseDate.load(ordering: .acquiring)) }
    set { lastUseDate.store(newValue.timeIntervalSinceReferenceDate, ordering: .releasing) }
  }

  /// How long the client retains the store. The limit is not part of it.
  var retention: OperationRetention {
    get { OperationRetention(seconds: retentionSeconds.load(ordering: .relaxed)) }
    set { retentionSeconds.store(newValue.seconds, ordering: .relaxed) }
  }

  /// When the client checks whether it evicts the store; in the distant future if never.
  var deadline: Date {
    get { Date(timeIntervalSinceReferenceDate: deadlineDate.load(ordering: .relaxed)) }
    set { deadlineDate.store(newValue.timeIntervalSinceReferenceDate, ordering: .relaxed) }
  }

  /// Whether the store reports each change to its client.
  var isWatched: Bool {
    get { reportsChanges.load(ordering: .relaxed) }
    set { reportsChanges.store(newValue, ordering: .relaxed) }
  }

  var latest: Snapshot {
    let version = version.load(ordering: .acquiring)
    let isInUse = recordedVersion.load(ordering: .acquiring) < version
    return Snapshot(version: version, isInUse: isInUse, lastUse: lastUse)
  }

  /// Begins or ends a use.
  ///
  /// The store calls this under its lock, so no change is missed and no other thread changes the
  /// version.
  func change(isUsed: Bool) -> Change {
    let new = version.load(ordering: .relaxed) + 1
    version.store(new, ordering: .releasing)
    return Change(isUsed: isUsed, version: new)
  }

  /// Records the date of the end of a use. Called without the store's lock, because it is the date
  /// of a clock, which is user code.
  func noteEnd(_ change: Change, at date: Date) {
    lastUse = date
    recordedVersion.max(change.version, ordering: .acquiringAndReleasing)
  }
}

extension Date {
  /// The date of the system clock at the last tick of the kernel, plus 10 ms, which is the longest
  /// tick: never too early. Reading it costs a fifth of reading the exact date, and each look-up reads
  /// it.
  static var soon: Date {
    var tick = timespec()
    clock_gettime(CLOCK_REALTIME_COARSE, &tick)
    return Date(timeIntervalSince1970: Double(tick.tv_sec) + Double(tick.tv_nsec) * 1e-9 + 0.01)
  }
}
