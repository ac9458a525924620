public import Operation
public import Synchronization

/// Knows what was read through a wrapper, and tells which of it a change touches.
///
/// The lock guards what is known; comparisons run without it.
@usableFromInline final class ReadTracker<State: OperationState>: Sendable {
  @usableFromInline final class Read: Sendable {
    /// Where the registrar keeps the readers; made once, because that costs more than to find it.
    @usableFromInline let keyPath: any KeyPath<SharedQueryCore<State>, Bool> & Sendable
    @usableFromInline let hasChanged: @Sendable (StateStep<State>) -> Bool

    @inlinable init(
      keyPath: any KeyPath<SharedQueryCore<State>, Bool> & Sendable,
      hasChanged: @escaping @Sendable (StateStep<State>) -> Bool
    ) {
      self.keyPath = keyPath
      self.hasChanged = hasChanged
    }
  }

  @usableFromInline let reads = Mutex<[MemberKey: Read]>([:])

  @inlinable init() {}

  /// What is known of the reads of a member; made by the first of them.
  @inlinable func read(_ key: MemberKey, orNote make: () -> Read) -> Read {
    if let read = read(of: key) { return read }
    let read = make()
    return reads.withLock { reads in
      if let present = reads[key] { return present }
      reads[key] = read
      return read
    }
  }

  @inlinable func read(of key: MemberKey) -> Read? { reads.withLock { $0[key] } }

  @inlinable var all: [MemberKey: Read] { reads.withLock { $0 } }
}

/// What can be read through a wrapper.
///
/// What is read most has a case of its own, because a key path of a generic type is made anew each
/// time that it is named.
@usableFromInline enum MemberKey: Sendable, Hashable {
  /// What is behind the wrapper.
  case binding
  case state
  case value
  case error
  case staleness
  case member(HashableKeyPath)
}

/// A member of a state, as a key.
@usableFromInline struct HashableKeyPath: Sendable, Hashable {
  @usableFromInline let keyPath: any AnyKeyPath & Sendable

  init(_ keyPath: any AnyKeyPath & Sendable) {
    self.keyPath = keyPath
  }

  @inlinable static func == (lhs: HashableKeyPath, rhs: HashableKeyPath) -> Bool {
    lhs.keyPath as AnyKeyPath == rhs.keyPath as AnyKeyPath
  }

  @inlinable func hash(into hasher: inout Hasher) {
    hasher.combine(keyPath as AnyKeyPath)
  }
}
