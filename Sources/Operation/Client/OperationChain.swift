public import ReactiveStreams

/// The values of the last of several requests, each of which is made from the value of the request
/// before it.
///
/// ```swift
/// let tasks = client.chain(CurrentUser()) { user in ProjectsOf(user.id) }
///   .chain { projects in OpenTasks(of: projects.map(\.id)) }
/// for await openTasks in tasks { print(openTasks?.count ?? 0) }
/// ```
///
/// A request is made when the request before it has a value, and again when that value changes. The
/// chain's element is the empty value of the last request while an earlier request has no value, or
/// the last one has none yet. When a request is made again, unread elements of the request that it
/// replaces are dropped.
///
/// The closures that make requests are called by one thread at a time, on any thread and with no lock
/// held. A chain and its iterators retain the client.
public struct OperationChain<Element: Sendable>: AsyncSequence, Sendable {
  /// A chain never fails; errors are in the states of the stores.
  public typealias Failure = Never
  /// The iterator that reads a chain.
  public typealias AsyncIterator = StateStream<Element>.Iterator

  /// The values of the chain as a stream. A slow reader gets the newest one.
  public let values: StateStream<Element>
  private let client: OperationClient

  init<Value: Sendable, Request: StatefulOperationRequest>(
    _ values: StateStream<Value>, client: OperationClient,
    _ request: @escaping @Sendable (Value) -> Request?
  ) where Request.State: ValueInitializedState, Request.State.StateValue == Element {
    let linked = values.flatMapLatest { value -> StateStream<Element> in
      // A stream that ends, or the chain would not end at a shutdown.
      request(value).map { client.values(of: $0) }
        ?? StateStream(.just(Request.State.emptyValue, ends: true))
    }
    self.values = Equality<Element>.comparison.map(linked.removeDuplicates(by:)) ?? linked
    self.client = client
  }

  /// Subscribes to the first store, and to the store of each request when it is made.
  public func makeAsyncIterator() -> AsyncIterator { values.makeAsyncIterator() }

  /// Continues the chain with a request that is made from each value that is not `nil`.
  ///
  /// - Parameter request: Returns the request for a value. It is called by one thread at a time, on
  ///   any thread, with no lock held.
  public func chain<Value: Sendable, Request: StatefulOperationRequest>(
    _ request: @escaping @Sendable (Value) -> Request
  ) -> OperationChain<Request.State.StateValue>
  where Element == Value?, Request.State: ValueInitializedState {
    OperationChain<Request.State.StateValue>(values, client: client) { $0.map(request) }
  }

  /// Continues the chain with a request that is made from each value.
  ///
  /// - Parameter request: Returns the request for a value. It is called by one thread at a time, on
  ///   any thread, with no lock held.
  @_disfavoredOverload
  public func chain<Request: StatefulOperationRequest>(
    _ request: @escaping @Sendable (Element) -> Request
  ) -> OperationChain<Request.State.StateValue> where Request.State: ValueInitializedState {
    OperationChain<Request.State.StateValue>(values, client: client, request)
  }
}

extension OperationStore {
  /// Starts a chain with a request that is made from each value of this store that is not `nil`.
  ///
  /// The stores of the chain are those of this store's client, or of ``OperationClient/shared`` for
  /// a store without a client.
  ///
  /// - Parameter request: Returns the request for a value. It is called by one thread at a time, on
  ///   any thread, with no lock held.
  public func chain<Value: Sendable, Request: StatefulOperationRequest>(
    _ request: @escaping @Sendable (Value) -> Request
  ) -> OperationChain<Request.State.StateValue>
  where State.StateValue == Value?, Request.State: ValueInitializedState {
    OperationChain(values, client: clientForChains) { $0.map(request) }
  }

  /// Starts a chain with a request that is made from each value of this store.
  ///
  /// The stores of the chain are those of this store's client, or of ``OperationClient/shared`` for
  /// a store without a client.
  ///
  /// - Parameter request: Returns the request for a value. It is called by one thread at a time, on
  ///   any thread, with no lock held.
  @_disfavoredOverload
  public func chain<Request: StatefulOperationRequest>(
    _ request: @escaping @Sendable (State.StateValue) -> Request
  ) -> OperationChain<Request.State.StateValue> where Request.State: ValueInitializedState {
    OperationChain(values, client: clientForChains, request)
  }

  private var clientForChains: OperationClient { context.operationClient ?? .shared }
}

extension OperationClient {
  /// Returns the values of a request, by the request's own rules.
  fileprivate func values<Request: StatefulOperationRequest>(
    of request: Request
  ) -> StateStream<Request.State.StateValue> where Request.State: ValueInitializedState {
    let (store, rules) = storeAndRules(for: request)
    return store.values(by: rules)
  }

  /// Starts a chain with a request and a second one that is made from each value of the first that
  /// is not `nil`.
  ///
  /// - Parameters:
  ///   - first: The first request.
  ///   - next: Returns the second request for a value. It is called by one thread at a time, on any
  ///     thread, with no lock held.
  public func chain<
    First: StatefulOperationRequest, Value: Sendable, Next: StatefulOperationRequest
  >(
    _ first: First, _ next: @escaping @Sendable (Value) -> Next
  ) -> OperationChain<Next.State.StateValue>
  where
    First.State: ValueInitializedState, First.State.StateValue == Value?,
    Next.State: ValueInitializedState
  {
    // Each reader looks the store up, so the chain does not retain it.
    let values = StreamSource { [self] in self.values(of: first).source.subscribe($0) }
    return OperationChain(StateStream(values), client: self) { $0.map(next) }
  }
}
