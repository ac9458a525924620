public import Operation

// The compiler does not infer the type of a property whose wrapper is initialised with an opaque request
// behind a modifier, unless the types of the state's value and failure are parameters of the initialiser.
extension SharedQuery {
  /// Creates a wrapper of the store for a query, whose type may be opaque, also with modifiers.
  public init<Request: StatefulOperationRequest, Value, Failure>(
    _ request: Request, client: OperationClient? = nil
  ) where Request.State == State, State == QueryState<Value, Failure> {
    self.init(request, in: client, projection: .identity) { $0.store(for: request) }
  }

  /// Creates a wrapper of the store for a query, whose type may be opaque, also with modifiers. A new store
  /// has `wrappedValue` as its initial value; an existing store keeps its value.
  public init<Request: StatefulOperationRequest, Value, Failure>(
    wrappedValue: Value?, _ request: Request, client: OperationClient? = nil
  ) where Request.State == State, State == QueryState<Value, Failure> {
    self.init(request, in: client, projection: .identity) {
      $0.store(for: request, initialValue: wrappedValue)
    }
  }

  /// Creates a wrapper of the store for a query, whose type may be opaque, also with modifiers, that
  /// displays a default for a missing value.
  public init<Request: StatefulOperationRequest, Value, Failure>(
    _ request: Request, default value: Value, client: OperationClient? = nil
  ) where Request.State == QueryState<Value, Failure>, State == DefaultState<Request.State> {
    self.init(request, in: client, projection: .defaulting(to: value)) { $0.store(for: request) }
  }

  /// Creates a wrapper of the store for a paginated request, whose type may be opaque, also with modifiers.
  public init<Request: StatefulOperationRequest, PageID, PageValue, Failure>(
    _ request: Request, client: OperationClient? = nil
  ) where Request.State == State, State == PaginatedState<PageID, PageValue, Failure> {
    self.init(request, in: client, projection: .identity) { $0.store(for: request) }
  }

  /// Creates a wrapper of the store for a paginated request, whose type may be opaque, also with modifiers,
  /// that displays a default while there is no page.
  public init<Request: StatefulOperationRequest, PageID, PageValue, Failure>(
    _ request: Request, default value: PaginatedPages<PageID, PageValue>,
    client: OperationClient? = nil
  )
  where
    Request.State == PaginatedState<PageID, PageValue, Failure>,
    State == DefaultState<Request.State>
  {
    self.init(request, in: client, projection: .defaulting(to: value)) { $0.store(for: request) }
  }

  /// Creates a wrapper of the store for a paginated request, whose type may be opaque, also with modifiers,
  /// that displays a part of the pages.
  ///
  /// The closure is called on any thread, with no lock held, whenever the value is read or compared, and must
  /// be quick.
  public init<Request: StatefulOperationRequest, PageID, PageValue, Failure, Selected>(
    _ request: Request, client: OperationClient? = nil,
    select: @escaping @Sendable (PaginatedPages<PageID, PageValue>) -> Selected
  )
  where
    Request.State == PaginatedState<PageID, PageValue, Failure>,
    State == SelectedState<Request.State, Selected>
  {
    self.init(request, in: client, projection: .selecting(select)) { $0.store(for: request) }
  }

  /// Creates a wrapper of the store for a mutation, whose type may be opaque, also with modifiers.
  public init<Request: StatefulOperationRequest, Arguments, Value, Failure>(
    _ request: Request, client: OperationClient? = nil
  ) where Request.State == State, State == MutationState<Arguments, Value, Failure> {
    self.init(request, in: client, projection: .identity) { $0.store(for: request) }
  }

  /// Creates a wrapper of the store for a mutation, whose type may be opaque, also with modifiers, that
  /// displays a default for a missing value.
  public init<Request: StatefulOperationRequest, Arguments, Value, Failure>(
    _ request: Request, default value: Value, client: OperationClient? = nil
  )
  where
    Request.State == MutationState<Arguments, Value, Failure>, State == DefaultState<Request.State>
  {
    self.init(request, in: client, projection: .defaulting(to: value)) { $0.store(for: request) }
  }

  /// Creates a wrapper of the store for a mutation, whose type may be opaque, also with modifiers, that
  /// displays a part of the value.
  ///
  /// The closure is called on any thread, with no lock held, whenever the value is read or compared, and must
  /// be quick.
  public init<Request: StatefulOperationRequest, Arguments, Value, Failure, Selected>(
    _ request: Request, client: OperationClient? = nil,
    select: @escaping @Sendable (Value?) -> Selected
  )
  where
    Request.State == MutationState<Arguments, Value, Failure>,
    State == SelectedState<Request.State, Selected>
  {
    self.init(request, in: client, projection: .selecting(select)) { $0.store(for: request) }
  }
}
