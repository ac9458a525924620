import FoundationEssentials
import Glibc
import Synchronization

/// What a client notes of a store: when it was used last, whether it is told of that, and how long the
/// store stays.
///
/// It is read while the client is locked, and therefore has no lock. How long the store stays is
/// written then, too.
struct StoreUse: ~Copyable, Sendable {
  /// A moment as a clock shows it.
  struct Moment: Sendable, Equatable {
    fileprivate let bits: UInt64

    init(_ date: Date) {
      bits = date.timeIntervalSinceReferenceDate.bitPattern
    }

    fileprivate init(bits: UInt64) {
      self.bits = bits
    }

    /// The present moment of the machine's clock, a tick of the kernel too late rather than too early:
    /// the clock is looked at with each use, and the time of its last tick costs a fifth of the exact.
    static var soon: Moment {
      var tick = timespec()
      clock_gettime(CLOCK_REALTIME_COARSE, &tick)
      return Moment(
        Date(timeIntervalSince1970: Double(tick.tv_sec) + Double(tick.tv_nsec) * 1e-9 + tickLength))
    }

    private static let tickLength: Double = {
      var length = timespec()
      clock_getres(CLOCK_REALTIME_COARSE, &length)
      return Double(length.tv_sec) + Double(length.tv_nsec) * 1e-9
    }()

    var date: Date { Date(timeIntervalSinceReferenceDate: Double(bitPattern: bits)) }
  }

  /// A store began to be used, or ended; later changes have greater versions.
  struct Change: Sendable {
    let isUsed: Bool
    let version: Int
  }

  /// What a use has been at; it has gone on if another one comes later.
  struct Mark: Sendable, Equatable {
    let lastUse: Moment
    let version: Int
    /// Whether it is known when the last use ended, if one has.
    let isNoted: Bool
  }

  init() {}

  // The first two are what each look-up touches.
  private let moment = Atomic<UInt64>(0)
  private let retentionTime = Atomic<UInt64>(0)
  private let deadlineBits = Atomic<UInt64>(0)
  private let version = Atomic(0)
  private let notedVersion = Atomic(0)
  private let isReported = Atomic(false)

  var lastUse: Moment {
    get { Moment(bits: moment.load(ordering: .acquiring)) }
    nonmutating set { moment.store(newValue.bits, ordering: .releasing) }
  }

  /// How long the client keeps the store; a limit is the client's own.
  var retention: OperationRetention {
    get {
      OperationRetention(seconds: Double(bitPattern: retentionTime.load(ordering: .relaxed)))
    }
    nonmutating set { retentionTime.store(newValue.seconds.bitPattern, ordering: .relaxed) }
  }

  /// When the client asks the store whether it may leave; in the distant future, if never.
  var deadline: Date {
    get { Moment(bits: deadlineBits.load(ordering: .relaxed)).date }
    nonmutating set { deadlineBits.store(Moment(newValue).bits, ordering: .relaxed) }
  }

  var latest: Mark {
    let version = version.load(ordering: .acquiring)
    let isNoted = notedVersion.load(ordering: .acquiring) >= version
    return Mark(lastUse: lastUse, version: version, isNoted: isNoted)
  }

  /// Notes when the use ended that a change tells of; the store is open by then, and may have been
  /// looked at.
  func noteEnd(_ change: Change, at moment: Moment) {
    lastUse = moment
    notedVersion.max(change.version, ordering: .acquiringAndReleasing)
  }

  /// Notes that a use begins or ends; called while the store is locked, so that no use is missed, and
  /// nobody else changes the version.
  func change(isUsed: Bool) -> Change {
    let new = version.load(ordering: .relaxed) + 1
    version.store(new, ordering: .releasing)
    return Change(isUsed: isUsed, version: new)
  }

  /// Whether the client wants to hear of each change.
  var isWatched: Bool {
    get { isReported.load(ordering: .relaxed) }
    nonmutating set { isReported.store(newValue, ordering: .relaxed) }
  }
}
