import Operation

/// A member that can be read through a wrapper.
enum ObservedMember: Sendable, Hashable {
  /// The store.
  case binding
  /// Whether there is a store.
  case backing
  case state
  case value
  case error
  case staleness
  /// Whether the value is that of the request before.
  case origin
  case keyPath(HashableKeyPath)
}

/// A key path of a state that can be part of a key.
struct HashableKeyPath: Sendable, Hashable {
  let keyPath: any AnyKeyPath & Sendable

  static func == (lhs: HashableKeyPath, rhs: HashableKeyPath) -> Bool {
    lhs.keyPath as AnyKeyPath == rhs.keyPath as AnyKeyPath
  }

  func hash(into hasher: inout Hasher) { hasher.combine(keyPath as AnyKeyPath) }
}

/// The readers of one member.
struct MemberReaders<State: OperationState>: Sendable {
  /// The key of these readers in the registrar. It is stored because it is slow to make.
  let keyPath: any KeyPath<SharedQueryCore<State>, Bool> & Sendable
  /// Returns whether a change concerns these readers.
  let hasChanged: @Sendable (StateChange<State.StoredState>) -> Bool
}
