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
///
/// - Important: When another wrapper is assigned in a class, `onChange` is called while the property
///   is being written, and Swift ends the program if it reads the property there and then. Read it
///   in a task, or use ``bind(to:)``, behind which everything can be read at once. That is also the
///   way where the wrapper was handed on as `$x`, or stands in several properties: who reads it is
///   told of an assignment only when the last of these has let it go.
@propertyWrapper
@dynamicMemberLookup
public struct SharedQuery<State: OperationState>: Sendable {
  let hold: SharedQueryHold<State>

  // In the body of the type, because only there it serves `@SharedQuery<State> var x`.
  /// Creates a wrapper with nothing behind it yet: its value is the empty one, and to run it throws
  /// ``SharedQueryError/unbacked``.
  public init() where State: ValueInitializedState {
    self.init(SharedQueryCore(.empty, client: .shared), .identity)
  }

  init(_ core: SharedQueryCore<State.StoredState>, _ projection: Projection<State>) {
    hold = .place(SharedQueryPlace(SharedQueryAnchor(core, projection)))
  }

  private init(projecting anchor: SharedQueryAnchor<State>) {
    hold = .projection(anchor)
  }

  var anchor: SharedQueryAnchor<State> {
    switch hold {
    case .place(let place): place.anchor
    case .projection(let anchor): anchor
    }
  }

  var core: SharedQueryCore<State.StoredState> { anchor.core }
  var projection: Projection<State> { anchor.projection }

  /// The value that the state shows.
  public var wrappedValue: State.StateValue {
    switch hold {
    case .place(let place): place.anchor.value
    case .projection(let anchor): anchor.value
    }
  }

  /// The wrapper itself, through which everything else about the request is reached.
  public var projectedValue: SharedQuery<State> { SharedQuery(projecting: anchor) }

  /// A member of the state.
  public subscript<Member: Sendable>(
    dynamicMember keyPath: any KeyPath<State, Member> & Sendable
  ) -> Member {
    member(.member(HashableKeyPath(keyPath))) { [projection] in
      projection.state($0)[keyPath: keyPath]
    }
  }

  /// A member of the state that a default is shown for, where the one with the default has none.
  @_disfavoredOverload
  public subscript<Base, Member: Sendable>(
    dynamicMember keyPath: any KeyPath<Base, Member> & Sendable
  ) -> Member where State == DefaultState<Base> {
    member(.member(HashableKeyPath(keyPath))) { $0[keyPath: keyPath] }
  }

  private func member<Member: Sendable>(
    _ key: MemberKey, _ member: @escaping @Sendable (State.StoredState) -> Member
  ) -> Member {
    core.access(key) {
      let areEqual = Equality<Member>.comparison
      return { step in
        guard let areEqual else { return true }
        return !areEqual(member(step.old), member(step.new))
      }
    }
    return member(core.binding.state)
  }

  /// The whole state.
  public var state: State {
    core.access(.state) { { _ in true } }
    return projection.state(core.binding.state)
  }

  /// The value that the state shows, as the property itself gives it.
  public var currentValue: State.StateValue { wrappedValue }

  /// What went wrong last; `nil` once a value has come.
  public var error: State.Failure? {
    core.access(.error) { { $0.hasNewError } }
    return projection.state(core.binding.state).error
  }
}

/// What can be told of values and failures that cannot be compared.
extension StateStep {
  var hasNewValue: Bool {
    !isSameStore || old.valueUpdateCount != new.valueUpdateCount
      || old.valueLastUpdatedAt != new.valueLastUpdatedAt
  }

  fileprivate var hasNewError: Bool {
    if old.error == nil, new.error == nil { return false }
    return !isSameStore || old.errorUpdateCount != new.errorUpdateCount
      || old.errorLastUpdatedAt != new.errorLastUpdatedAt
      || (old.error == nil) != (new.error == nil)
  }
}
