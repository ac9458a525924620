@_exported public import Operation

/// Reads the value of a request as a property.
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
/// It can be used in classes, in structs and for local variables. The members of the state are
/// members of the projected value, such as `$posts.isLoading`.
///
/// All copies of a wrapper share one subscription to its store, which ends when the last copy is
/// released.
///
/// A read inside `withObservationTracking` or `Observations` is tracked. Its observer is notified
/// when the member that was read changes: an observer of the value is not notified of a loading flag.
/// Observers are notified on the thread that makes the change, after the change, with no lock held.
/// They are also notified when the last property that holds the wrapper releases it or gets another
/// one. Projected values do not count as properties.
///
/// - Important: When another wrapper is assigned to a property of a class, `onChange` is called while
///   the property is being modified, and a read of the property inside `onChange` ends the program.
///   Read it in a task instead, or use ``bind(to:)``, after which it can be read at once. Also use
///   ``bind(to:)`` where several properties hold copies of the wrapper: an assignment notifies
///   observers only when the last of them is replaced.
@propertyWrapper
@dynamicMemberLookup
public struct SharedQuery<State: OperationState>: Sendable {
  let core: SharedQueryCore<State>
  /// Notifies the readers when the last property that holds the wrapper releases it. It is empty in a
  /// projected value, which may be in use by a fetch for longer.
  private let property: OperationSubscription
  /// Ends the subscriptions when the last copy of the wrapper is released.
  private let lifetime: OperationSubscription

  // `@SharedQuery<State> var x` finds this initialiser only in the body of the type.
  /// Creates a wrapper without a store.
  ///
  /// Its value is the empty one, and its runs throw ``SharedQueryError/unbacked``, until a request is
  /// bound to it with ``bind(to:)``. Requests are bound in `OperationClient.shared`.
  public init() where State: ValueInitializedState { self.init(client: .unreported) }

  /// Creates a wrapper without a store, as `init()` does. Requests are bound in a client.
  ///
  /// ```swift
  /// final class PlaceModel {
  ///   @SharedQuery<ForecastQuery.State> var forecast
  ///
  ///   init(client: OperationClient) { _forecast = SharedQuery(client: client) }
  /// }
  /// ```
  public init(client: OperationClient) where State: ValueInitializedState {
    self.init(SharedQueryCore(.empty, client: client, projection: .identity))
  }

  /// Creates a wrapper of a part of a value, without a store. Assign a wrapper with a request in its place, such as in
  /// the initialiser of a model.
  ///
  /// This one does not know the part: its value is `nil`, also when a request is bound to it with ``bind(to:)``.
  public init<Base: ValueInitializedState, Part>() where State == SelectedState<Base, Part?> {
    self.init(SharedQueryCore(.empty, client: .unreported, projection: .selecting { _ in nil }))
  }

  init(_ core: SharedQueryCore<State>, upstream: OperationSubscription = .empty) {
    self.core = core
    property = OperationSubscription { core.notifyAllReaders() }
    lifetime = .combined(upstream, OperationSubscription { core.end() })
  }

  private init(projecting wrapper: SharedQuery) {
    core = wrapper.core
    property = .empty
    lifetime = wrapper.lifetime
  }

  /// The displayed value.
  public var wrappedValue: State.StateValue { core.readValue() }

  /// The wrapper, with the members of its state and the methods of its store.
  public var projectedValue: SharedQuery<State> { SharedQuery(projecting: self) }

  /// The displayed value, which is also the value of the property.
  public var currentValue: State.StateValue { wrappedValue }

  /// The whole state.
  public var state: State {
    core.access(.state, hasChanged: { _ in true })
    return core.projection.state(core.binding.state)
  }

  /// The failure of the last run, or `nil` if a value has arrived since.
  public var error: State.Failure? {
    core.access(.error, hasChanged: { $0.hasNewError })
    return core.projection.state(core.binding.state).error
  }

  /// Returns a member of the state.
  public subscript<Member: Sendable>(
    dynamicMember keyPath: any KeyPath<State, Member> & Sendable
  ) -> Member {
    core.readMember(keyPath) { [projection = core.projection] in
      projection.state($0)[keyPath: keyPath]
    }
  }

  /// Returns a member that only the state without the default has.
  @_disfavoredOverload
  public subscript<Base, Member: Sendable>(
    dynamicMember keyPath: any KeyPath<Base, Member> & Sendable
  ) -> Member where State == DefaultState<Base> {
    core.readMember(keyPath) { $0[keyPath: keyPath] }
  }
}

extension SharedQuery: CustomStringConvertible, CustomDebugStringConvertible {
  /// The path of the store, or `unbacked`, and the state.
  ///
  /// A read is not tracked by observation.
  public var description: String {
    let binding = core.binding
    let state = core.projection.state(binding.state)
    return describe(
      as: "SharedQuery", binding.store?.path.description ?? "unbacked", describe(state))
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

/// An error of a wrapper itself.
public enum SharedQueryError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The wrapper has no store.
  case unbacked

  /// A sentence that names the error and what to do.
  public var description: String {
    "There is no store behind this wrapper yet; assign another wrapper, or call bind(to:)."
  }
}

extension OperationIssue.Kind {
  /// A write to a wrapper without a store.
  public static let unbackedWrite = Self(rawValue: "unbacked write")
}
