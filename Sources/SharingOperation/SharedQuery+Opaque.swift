public import Operation

// The compiler does not infer the type of a property whose wrapper is initialised with an opaque request
// behind a modifier, unless the types of the state's value and failure are parameters of the initialiser.
extension SharedQuery {
  /// Creates a wrapper of the store for a query, whose type may be opaque, also with modifiers.
  public init<Request: StatefulOperationRequest, Value, Failure>(
    _ request: Request, client: OperationClient? = nil
  ) where Request.State == QueryState<Value, Failure>, State == QueryState<Value, Failure> {
    let client = client ?? .shared
    self.init(request, in: client.store(for: request), of: client)
  }

  /// Creates a wrapper of the store for a query, whose type may be opaque, also with modifiers. A new store
  /// has `wrappedValue` as its initial value; an existing store keeps its value.
  public init<Request: StatefulOperationRequest, Value, Failure>(
    wrappedValue: Value?, _ request: Request, client: OperationClient? = nil
  ) where Request.State == QueryState<Value, Failure>, State == QueryState<Value, Failure> {
    let client = client ?? .shared
    self.init(request, in: client.store(for: request, initialValue: wrappedValue), of: client)
  }

  /// Creates a wrapper of the store for a query, whose type may be opaque, also with modifiers, that
  /// displays a default for a missing value.
  public init<Request: StatefulOperationRequest, Value, Failure>(
    _ request: Request, default value: Value, client: OperationClient? = nil
  )
  where
    Request.State == QueryState<Value, Failure>, State == DefaultState<QueryState<Value, Failure>>
  {
    let client = client ?? .shared
    let binding = Binding(request, in: client.store(for: request), of: client)
    self.init(SharedQueryCore(binding, client: client, projection: .defaulting(to: value)))
  }

  /// Creates a wrapper of the store for a paginated request, whose type may be opaque, also with modifiers.
  public init<Request: StatefulOperationRequest, PageID, PageValue, Failure>(
    _ request: Request, client: OperationClient? = nil
  )
  where
    Request.State == PaginatedState<PageID, PageValue, Failure>,
    State == PaginatedState<PageID, PageValue, Failure>
  {
    let client = client ?? .shared
    self.init(request, in: client.store(for: request), of: client)
  }

  /// Creates a wrapper of the store for a mutation, whose type may be opaque, also with modifiers.
  public init<Request: StatefulOperationRequest, Arguments, Value, Failure>(
    _ request: Request, client: OperationClient? = nil
  )
  where
    Request.State == MutationState<Arguments, Value, Failure>,
    State == MutationState<Arguments, Value, Failure>
  {
    let client = client ?? .shared
    self.init(request, in: client.store(for: request), of: client)
  }
}
