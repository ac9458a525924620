import Operation
import Synchronization

/// Knows what was read through a wrapper, and tells which of it a change touches.
///
/// The lock guards what is known; comparisons run without it.
final class ReadTracker<State: OperationState>: Sendable {
  final class Read: Sendable {
    /// Where the registrar keeps the readers; made once, because that costs more than to find it.
    let keyPath: any KeyPath<SharedQueryCore<State>, Bool> & Sendable
    let hasChanged: @Sendable (StateStep<State>) -> Bool

    init(
      keyPath: any KeyPath<SharedQueryCore<State>, Bool> & Sendable,
      hasChanged: @escaping @Sendable (StateStep<State>) -> Bool
    ) {
      self.keyPath = keyPath
      self.hasChanged = hasChanged
    }
  }

  let reads = Mutex<[MemberKey: Read]>([:])

  init() {}

  /// What is known of the reads of a member; made by the first of them.
  func read(_ key: MemberKey, orNote make: () -> Read) -> Read {
    if let read = read(of: key) { return read }
    let read = make()
    return reads.withLock { reads in
      if let present = reads[key] { return present }
      reads[key] = read
      return read
    }
  }

  func read(of key: MemberKey) -> Read? { reads.withLock { $0[key] } }

  var all: [MemberKey: Read] { reads.withLock { $0 } }
}

/// What can be read through a wrapper.
///
/// What is read most has a case of its own, because a key path of a generic type is made anew each
/// time that it is named.
enum MemberKey: Sendable, Hashable {
  /// What is behind the wrapper.
  case binding
  case state
  case value
  case error
  case staleness
  case member(HashableKeyPath)
}

/// A member of a state, as a key.
struct HashableKeyPath: Sendable, Hashable {
  let keyPath: any AnyKeyPath & Sendable

  init(_ keyPath: any AnyKeyPath & Sendable) {
    self.keyPath = keyPath
  }

  static func == (lhs: HashableKeyPath, rhs: HashableKeyPath) -> Bool {
    lhs.keyPath as AnyKeyPath == rhs.keyPath as AnyKeyPath
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(keyPath as AnyKeyPath)
  }
}
