public import Operation

extension SharedQuery {
  /// Creates a wrapper of the store for a request.
  ///
  /// - Parameters:
  ///   - request: The request, whose type may be opaque, also with modifiers.
  ///   - client: The client of the store; `OperationClient.shared` by default.
  public init<Request: StatefulOperationRequest>(
    _ request: Request, client: OperationClient? = nil
  ) where Request.State == State, State: ValueInitializedState {
    self.init(request, in: client, projection: .identity) { $0.store(for: request) }
  }

  /// Creates a wrapper of the store for a request. A new store has `wrappedValue` as its initial
  /// value; an existing store keeps its value.
  public init<Request: StatefulOperationRequest>(
    wrappedValue: State.StateValue, _ request: Request, client: OperationClient? = nil
  ) where Request.State == State, State: ValueInitializedState {
    self.init(request, in: client, projection: .identity) {
      $0.store(for: request, initialValue: wrappedValue)
    }
  }

  /// Creates a wrapper of the store for a request. A new store begins with `initialState`; an existing
  /// store keeps its state.
  public init<Request: StatefulOperationRequest>(
    _ request: Request, initialState: State, client: OperationClient? = nil
  ) where Request.State == State, Request.State.StoredState == Request.State {
    self.init(request, in: client, projection: .identity) {
      $0.store(for: request, initialState: initialState)
    }
  }

  /// Creates a wrapper of a store.
  ///
  /// Requests are bound in the client of the store, or in `OperationClient.shared` if it has none.
  public init(_ store: OperationStore<State>) where State.StoredState == State {
    let client = store.context.operationClient ?? .unreported
    self.init(SharedQueryCore(.store(store), client: client, projection: .identity))
  }

  /// Creates a wrapper of the store for a request that displays a default for a missing value.
  ///
  /// A wrapper without the default has the same store and the same stored state.
  public init<Request: StatefulOperationRequest>(
    _ request: Request, default value: State.StateValue, client: OperationClient? = nil
  ) where Request.State: DefaultableState, State == DefaultState<Request.State> {
    self.init(request, in: client, projection: .defaulting(to: value)) { $0.store(for: request) }
  }

  /// Creates a wrapper without a store that displays a default until a request is bound to it, and also later for
  /// a missing value.
  ///
  /// ```swift
  /// final class FeedModel {
  ///   @SharedQuery<DefaultState<PostsQuery.State>>(default: []) var posts
  ///
  ///   init(client: OperationClient) { _posts = SharedQuery(PostsQuery(), default: [], client: client) }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - value: The default.
  ///   - client: The client in which requests are bound; `OperationClient.shared` by default.
  public init<Base: ValueInitializedState>(
    default value: Base.DefaultedValue, client: OperationClient? = nil
  ) where State == DefaultState<Base> {
    let projection = Projection<State>.defaulting(to: value)
    self.init(SharedQueryCore(.empty, client: client ?? .unreported, projection: projection))
  }

  /// Creates a wrapper of a store for a request, in `OperationClient.shared` if `client` is `nil`.
  ///
  /// - Parameter store: Returns the store in the client.
  init<Request: StatefulOperationRequest>(
    _ request: Request, in client: OperationClient?, projection: Projection<State>,
    store: (OperationClient) -> OperationStore<State.StoredState>
  ) where Request.State == State.StoredState {
    let client = client ?? .shared
    let binding = Binding(request, in: store(client))
    self.init(SharedQueryCore(binding, client: client, projection: projection))
  }
}

extension SharedQuery {
  /// Creates a wrapper of the store for a query that displays a part of its value, and whose observers
  /// are notified only when that part changes.
  ///
  /// ```swift
  /// @SharedQuery(PostQuery(id: 1), select: { $0.title }) var title
  /// ```
  ///
  /// It is a projection: a wrapper of the same query without it has the same store. A part cannot be
  /// written; that is reported as an `OperationIssue`, and dropped.
  ///
  /// - Parameters:
  ///   - request: The query.
  ///   - client: The client of the store; `OperationClient.shared` by default.
  ///   - select: Returns the part. It is called on any thread, with no lock held, whenever the value is
  ///     read or compared, and must be quick.
  public init<Request: StatefulOperationRequest, Value, Failure, Selected>(
    _ request: Request, client: OperationClient? = nil,
    select: @escaping @Sendable (Value) -> Selected
  )
  where
    Request.State == QueryState<Value, Failure>, State == SelectedState<Request.State, Selected?>
  {
    let projection = Projection<State>.selecting { $0.map(select) }
    self.init(request, in: client, projection: projection) { $0.store(for: request) }
  }

  /// Creates a wrapper of the store for a request that displays a part of its value, such as the number
  /// of its pages, as `init(_:client:select:)` does for a query.
  @_disfavoredOverload
  public init<Request: StatefulOperationRequest, Selected>(
    _ request: Request, client: OperationClient? = nil,
    select: @escaping @Sendable (Request.State.StateValue) -> Selected
  ) where Request.State: ValueInitializedState, State == SelectedState<Request.State, Selected> {
    self.init(request, in: client, projection: .selecting(select)) { $0.store(for: request) }
  }
}

extension SharedQuery {
  /// Creates a wrapper of the request that is made from the value of another wrapper.
  ///
  /// The wrapper is bound to a new request whenever the other value changes. While the other value is
  /// missing, and for a value without a request, this wrapper is unbacked and displays the empty value. A
  /// read on any thread uses the request for the other value as it is at that moment.
  ///
  /// - Parameters:
  ///   - other: The wrapper that is followed. A wrapper that is assigned in its place later is not.
  ///   - client: The client of the store; that of the other wrapper by default.
  ///   - keepingPrevious: Whether the value for the earlier request is displayed until the new one has a
  ///     value; `false` by default. See ``isPrevious``.
  ///   - request: Returns the request for a value; `nil` for none. It is called with no lock held, on a
  ///     thread that changes the other value or reads this wrapper.
  public init<Other, Value: Sendable, Request: StatefulOperationRequest>(
    dependingOn other: SharedQuery<Other>, client: OperationClient? = nil,
    keepingPrevious: Bool = false, _ request: @escaping @Sendable (Value) -> Request?
  ) where Request.State == State, State: ValueInitializedState, Other.StateValue == Value? {
    self.init(following: other, client: client, keepingPrevious) { $0.flatMap(request) }
  }

  /// Creates a wrapper of the request that is made from the value of another wrapper, whose value is
  /// never missing.
  ///
  /// - Parameters:
  ///   - other: The wrapper that is followed. A wrapper that is assigned in its place later is not.
  ///   - client: The client of the store; that of the other wrapper by default.
  ///   - keepingPrevious: Whether the value for the earlier request is displayed until the new one
  ///     has a value; `false` by default. See ``isPrevious``.
  ///   - request: Returns the request for a value; `nil` for none. It is called with no lock held,
  ///     on a thread that changes the other value or reads this wrapper.
  @_disfavoredOverload
  public init<Other, Request: StatefulOperationRequest>(
    dependingOn other: SharedQuery<Other>, client: OperationClient? = nil,
    keepingPrevious: Bool = false, _ request: @escaping @Sendable (Other.StateValue) -> Request?
  ) where Request.State == State, State: ValueInitializedState {
    self.init(following: other, client: client, keepingPrevious, request)
  }

  /// Creates a wrapper of the request that is made from the newest element of a stream, such as the
  /// selection in a list.
  ///
  /// Before the first element, and for one without a request, the wrapper is unbacked and displays the
  /// empty value. When the stream ends, the wrapper stays with the last request.
  ///
  /// - Parameters:
  ///   - stream: The stream. It is read as long as the wrapper lives.
  ///   - client: The client of the store; `OperationClient.shared` by default.
  ///   - keepingPrevious: Whether the value for the earlier request is displayed until the new one has a
  ///     value; `false` by default. See ``isPrevious``.
  ///   - request: Returns the request for an element; `nil` for none. It is called with no lock held, on a
  ///     thread that sends an element or reads this wrapper.
  public init<Element, Request: StatefulOperationRequest>(
    dependingOn stream: StateStream<Element>, client: OperationClient? = nil,
    keepingPrevious: Bool = false, _ request: @escaping @Sendable (Element) -> Request?
  ) where Request.State == State, State: ValueInitializedState {
    let client = client ?? .shared
    let newest = LastElement<(element: Element, number: Int)>()
    let upstream = Upstream<State>(newest, keepsPrevious: keepingPrevious) { element in
      Binding(element.flatMap(request), in: client)
    }
    let core = SharedQueryCore<State>(
      .empty, client: client, projection: .identity, upstream: upstream)
    let subscription = stream.source.subscribe { signal in
      guard case .element(let element, let epoch) = signal, epoch?.isOver != true else { return }
      newest.set((element, (newest.value?.number ?? 0) + 1))
      core.followUpstream()
    }
    self.init(core, upstream: subscription)
  }

  private init<Other, Request: StatefulOperationRequest>(
    following other: SharedQuery<Other>, client: OperationClient?, _ keepsPrevious: Bool,
    _ request: @escaping @Sendable (Other.StateValue) -> Request?
  ) where Request.State == State, State: ValueInitializedState {
    let client = client ?? other.core.client
    let upstream = Upstream<State>(other.core, keepsPrevious: keepsPrevious) { value in
      Binding(request(value), in: client)
    }
    let core = SharedQueryCore<State>(
      .empty, client: client, projection: .identity, upstream: upstream)
    // The source sends its first element late if a delivery of its store is in progress.
    core.followUpstream()
    let changes = other.core.bindings.flatMapLatest(\.changes)
    let subscription = changes.subscribe { _ in core.followUpstream() }
    // A projected value keeps the other wrapper, and what that one follows, in use.
    let otherLifetime = OperationSubscription { [other = other.projectedValue] in
      withExtendedLifetime(other) { subscription.cancel() }
    }
    self.init(core, upstream: otherLifetime)
  }
}
