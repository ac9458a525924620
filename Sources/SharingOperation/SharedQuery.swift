public import Operation

/// Reads the value of a request where a property is read.
///
/// ```swift
/// @Observable
/// final class FeedModel {
///   @ObservationIgnored
///   @SharedQuery(PostsQuery(), default: []) var posts
///
///   func refresh() async throws {
///     try await $posts.fetch()
///   }
/// }
/// ```
///
/// It works in classes, structs and local variables. A read inside `withObservationTracking` or
/// `Observations` is tracked, and only what was read: a reader of the value is not told of a loading
/// flag. The wrapper subscribes to its store once, however often it is copied, and until its last
/// copy is gone or replaced; then those who read it are told. The members of the state are members
/// of the projected value.
@propertyWrapper
@dynamicMemberLookup
public struct SharedQuery<State: OperationState>: Sendable {
  private let anchor: SharedQueryAnchor<State.StoredState>
  let projection: Projection<State>

  // In the body of the type, because only there it serves `@SharedQuery<State> var x`.
  /// Creates a wrapper with nothing behind it yet: its value is the empty one, and to run it throws
  /// ``SharedQueryError/unbacked``.
  public init() where State: ValueInitializedState {
    self.init(SharedQueryCore(.empty, client: .shared), .identity)
  }

  init(_ core: SharedQueryCore<State.StoredState>, _ projection: Projection<State>) {
    anchor = SharedQueryAnchor(core)
    self.projection = projection
  }

  var core: SharedQueryCore<State.StoredState> { anchor.core }

  /// The value that the state shows.
  public var wrappedValue: State.StateValue {
    core.access(MemberKey(\State.StoredState.currentValue), hasChanged: valueHasChanged)
    return projection.value(core.binding.currentValue)
  }

  /// The wrapper itself, through which everything else about the request is reached.
  public var projectedValue: SharedQuery<State> { self }

  /// A member of the state.
  public subscript<Member: Sendable>(
    dynamicMember keyPath: any KeyPath<State, Member> & Sendable
  ) -> Member {
    member(MemberKey(keyPath)) { [projection] in projection.state($0)[keyPath: keyPath] }
  }

  /// A member of the state that a default is shown for.
  public subscript<Base, Member: Sendable>(
    dynamicMember keyPath: any KeyPath<Base, Member> & Sendable
  ) -> Member where State == DefaultState<Base> {
    member(MemberKey(keyPath)) { $0[keyPath: keyPath] }
  }

  private func member<Member: Sendable>(
    _ key: MemberKey, _ member: @escaping @Sendable (State.StoredState) -> Member
  ) -> Member {
    core.access(key) { old, new in
      guard let areEqual = Equality<Member>.comparison else { return true }
      return !areEqual(member(old), member(new))
    }
    return member(core.binding.state)
  }

  /// The whole state.
  public var state: State {
    core.access(MemberKey(\State.StoredState.self)) { _, _ in true }
    return projection.state(core.binding.state)
  }

  /// What went wrong last; `nil` once a value has come.
  public var error: State.Failure? {
    core.access(MemberKey(\State.StoredState.error)) { old, new in
      old.errorUpdateCount != new.errorUpdateCount || (old.error == nil) != (new.error == nil)
    }
    return projection.state(core.binding.state).error
  }
}

/// Whether a reader of the value has to be told.
@Sendable
private func valueHasChanged<State: OperationState>(_ old: State, _ new: State) -> Bool {
  if let areEqual = Equality<State.StateValue>.comparison {
    return !areEqual(old.currentValue, new.currentValue)
  }
  return old.valueUpdateCount != new.valueUpdateCount
    || old.valueLastUpdatedAt != new.valueLastUpdatedAt
}
