public import Operation

extension SharedQuery {
  /// Creates a wrapper of the store of a request.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - client: Where the store is; `OperationClient.shared` unless given.
  public init<Request: StatefulOperationRequest>(
    _ request: Request, client: OperationClient? = nil
  ) where Request.State == State, State: ValueInitializedState {
    let client = client ?? .shared
    self.init(client.store(for: request), client: client)
  }

  /// Creates a wrapper of the store of a request, which begins with a value if it is made now.
  public init<Request: StatefulOperationRequest>(
    wrappedValue: State.StateValue, _ request: Request, client: OperationClient? = nil
  ) where Request.State == State, State: ValueInitializedState {
    let client = client ?? .shared
    self.init(client.store(for: request, initialValue: wrappedValue), client: client)
  }

  /// Creates a wrapper of the store of a request, which begins with a state if it is made now.
  public init<Request: StatefulOperationRequest>(
    _ request: Request, initialState: State, client: OperationClient? = nil
  ) where Request.State == State, Request.State.StoredState == Request.State {
    let client = client ?? .shared
    self.init(client.store(for: request, initialState: initialState), client: client)
  }

  /// Creates a wrapper of a store.
  public init(_ store: OperationStore<State>) where State.StoredState == State {
    self.init(store, client: store.context.operationClient ?? .shared)
  }

  init(_ store: OperationStore<State>, client: OperationClient)
  where State.StoredState == State {
    self.init(SharedQueryCore(.store(store), client: client), .identity)
  }

  /// Creates a wrapper of the request that the value of another wrapper gives.
  ///
  /// The request is made when there is a value, made anew when the value changes, and left when it
  /// is gone; then the value of this wrapper is the empty one.
  ///
  /// - Parameters:
  ///   - other: The wrapper to follow, as what it is now: one that is assigned in its place is not
  ///     followed.
  ///   - client: Where the store is; that of the other wrapper unless given.
  ///   - request: Makes the request from the value.
  public init<Other, Value: Sendable, Request: StatefulOperationRequest>(
    dependingOn other: SharedQuery<Other>, client: OperationClient? = nil,
    _ request: @escaping @Sendable (Value) -> Request
  ) where Request.State == State, State: ValueInitializedState, Other.StateValue == Value? {
    self.init(following: other, client: client) { $0.map(request) }
  }

  /// Creates a wrapper of the request that the value of another wrapper, which always has one, gives.
  public init<Other, Request: StatefulOperationRequest>(
    dependingOn other: SharedQuery<Other>, client: OperationClient? = nil,
    _ request: @escaping @Sendable (Other.StateValue) -> Request
  ) where Request.State == State, State: ValueInitializedState {
    self.init(following: other, client: client, request)
  }

  private init<Other, Request: StatefulOperationRequest>(
    following other: SharedQuery<Other>, client: OperationClient?,
    _ request: @escaping @Sendable (Other.StateValue) -> Request?
  ) where Request.State == State, State: ValueInitializedState {
    let client = client ?? other.core.client
    let core = SharedQueryCore<State>(.empty, client: client)
    self.init(core, .identity)
    let values = StreamSource<Other.StateValue> { handler in
      // What is there; the stream may have to wait for another delivery before it tells that.
      handler(.element(other.projection.value(other.core.currentValue)))
      return other.values.source.subscribe(handler)
    }
    let areEqual = Equality<Other.StateValue>.comparison
    let changes = areEqual.map(values.removeDuplicates(by:)) ?? values
    let subscription = changes.subscribe { [weak core] signal in
      guard let core, case .element(let value) = signal else { return }
      core.bind(to: request(value).map { client.store(for: $0) })
    }
    // The projected value keeps the other wrapper at it, which may itself follow a third one.
    core.depend(
      on: OperationSubscription { [other = other.projectedValue] in
        withExtendedLifetime(other) { subscription.cancel() }
      })
  }
}

extension SharedQuery {
  /// Creates a wrapper of the store of a request that shows a default where there is no value.
  ///
  /// It looks at the same store, and the same state, as a wrapper without a default.
  public init<Request: StatefulOperationRequest>(
    _ request: Request, default value: State.StateValue, client: OperationClient? = nil
  ) where Request.State: DefaultableState, State == DefaultState<Request.State> {
    let client = client ?? .shared
    let core = SharedQueryCore(.store(client.store(for: request)), client: client)
    self.init(core, .defaulting(to: value))
  }
}

extension Binding where State: ValueInitializedState {
  static var empty: Binding { .none(State(initialValue: State.emptyValue)) }
}
