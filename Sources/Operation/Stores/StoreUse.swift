import FoundationEssentials
import Synchronization

/// When a store was used last, and whether its client is told of that.
///
/// It is read while the client is locked, and therefore has no lock.
final class StoreUse: Sendable {
  /// A moment as a clock shows it.
  struct Moment: Sendable, Equatable {
    fileprivate let bits: UInt64

    init(_ date: Date) {
      bits = date.timeIntervalSinceReferenceDate.bitPattern
    }

    fileprivate init(bits: UInt64) {
      self.bits = bits
    }

    var date: Date { Date(timeIntervalSinceReferenceDate: Double(bitPattern: bits)) }
  }

  /// A store began to be used, or ended; later changes have greater versions.
  struct Change: Sendable {
    let isUsed: Bool
    let version: Int
  }

  private let moment = Atomic<UInt64>(0)
  private let isReported = Atomic(false)

  var lastUse: Moment {
    get { Moment(bits: moment.load(ordering: .acquiring)) }
    set { moment.store(newValue.bits, ordering: .releasing) }
  }

  /// Whether the client wants to hear of each change.
  var isWatched: Bool {
    get { isReported.load(ordering: .relaxed) }
    set { isReported.store(newValue, ordering: .relaxed) }
  }
}
