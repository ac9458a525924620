import Operation
import Synchronization

/// Knows what was read through a wrapper, and tells which of it a change touches.
///
/// The lock guards the table; comparisons run without it.
final class ReadTracker<State: OperationState>: Sendable {
  struct Read: Sendable {
    let hasChanged: @Sendable (StateStep<State>) -> Bool
    let tell: @Sendable () -> Void
  }

  private let reads = Mutex<[MemberKey: Read]>([:])

  func note(_ key: MemberKey, _ read: @autoclosure () -> Read) {
    if reads.withLock({ $0[key] != nil }) { return }
    let read = read()
    reads.withLock { $0[key] = read }
  }

  /// The readers of what differs in one of the steps.
  func affected(by steps: [StateStep<State>]) -> [Read] {
    steps.isEmpty ? [] : all.filter { steps.contains(where: $0.hasChanged) }
  }

  var all: [Read] { reads.withLock { Array($0.values) } }
}

/// A member of a state, or what is behind the wrapper, as a key.
struct MemberKey: Sendable, Hashable {
  /// `nil` for what is behind the wrapper.
  private let keyPath: (any AnyKeyPath & Sendable)?

  init(_ keyPath: any AnyKeyPath & Sendable) {
    self.keyPath = keyPath
  }

  private init() {
    keyPath = nil
  }

  static var binding: MemberKey { MemberKey() }

  static func == (lhs: MemberKey, rhs: MemberKey) -> Bool {
    lhs.keyPath as AnyKeyPath? == rhs.keyPath as AnyKeyPath?
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(keyPath as AnyKeyPath?)
  }
}
