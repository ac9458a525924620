public import ReactiveStreams

/// The values of the last of several requests, each of which is made from the value of the one
/// before.
///
/// ```swift
/// let tasks = client.chain(CurrentUser()) { user in ProjectsOf(user.id) }
///   .chain { projects in OpenTasks(of: projects.map(\.id)) }
/// for await openTasks in tasks { print(openTasks?.count ?? 0) }
/// ```
///
/// A request is made when the one before it has a value, and made anew when that value changes, and
/// only then. When the value is gone, or the new request has none yet, the chain gives the empty
/// value. What an earlier request gave is dropped when a later one is made, unless it has reached the
/// reader.
public struct OperationChain<Element: Sendable>: AsyncSequence, Sendable {
  /// A chain never fails; errors are in the states of the stores.
  public typealias Failure = Never
  /// The reader's end of a chain.
  public typealias AsyncIterator = StateStream<Element>.Iterator

  /// The values of the chain as a stream.
  public let values: StateStream<Element>
  private let client: OperationClient

  init<Value: Sendable, Request: StatefulOperationRequest>(
    _ values: StateStream<Value>, client: OperationClient,
    _ request: @escaping @Sendable (Value) -> Request?
  ) where Request.State: ValueInitializedState, Request.State.StateValue == Element {
    let linked = values.flatMapLatest { value -> StateStream<Element> in
      guard let request = request(value) else { return .just(Request.State.emptyValue) }
      return client.store(for: request).values
    }
    self.values = Equality<Element>.comparison.map(linked.removeDuplicates(by:)) ?? linked
    self.client = client
  }

  /// Subscribes to the first store, and to the others as they are made.
  public func makeAsyncIterator() -> AsyncIterator { values.makeAsyncIterator() }

  /// Goes on with a request that is made from the value, where there is one.
  public func chain<Value: Sendable, Request: StatefulOperationRequest>(
    _ request: @escaping @Sendable (Value) -> Request
  ) -> OperationChain<Request.State.StateValue>
  where Element == Value?, Request.State: ValueInitializedState {
    OperationChain<Request.State.StateValue>(values, client: client) { $0.map(request) }
  }

  /// Goes on with a request that is made from the value.
  @_disfavoredOverload
  public func chain<Request: StatefulOperationRequest>(
    _ request: @escaping @Sendable (Element) -> Request
  ) -> OperationChain<Request.State.StateValue> where Request.State: ValueInitializedState {
    OperationChain<Request.State.StateValue>(values, client: client, request)
  }
}

extension OperationStore {
  /// Follows this store with a request that is made from its value, where there is one, in the
  /// client of this store.
  public func chain<Value: Sendable, Request: StatefulOperationRequest>(
    _ request: @escaping @Sendable (Value) -> Request
  ) -> OperationChain<Request.State.StateValue>
  where State.StateValue == Value?, Request.State: ValueInitializedState {
    OperationChain(values, client: clientForChains) { $0.map(request) }
  }

  /// Follows this store with a request that is made from its value, in the client of this store.
  @_disfavoredOverload
  public func chain<Request: StatefulOperationRequest>(
    _ request: @escaping @Sendable (State.StateValue) -> Request
  ) -> OperationChain<Request.State.StateValue> where Request.State: ValueInitializedState {
    OperationChain(values, client: clientForChains, request)
  }

  private var clientForChains: OperationClient { context.operationClient ?? .shared }
}

extension OperationClient {
  /// Follows the store of a request with one that is made from its value, where there is one.
  public func chain<
    First: StatefulOperationRequest, Value: Sendable, Next: StatefulOperationRequest
  >(
    _ first: First, _ next: @escaping @Sendable (Value) -> Next
  ) -> OperationChain<Next.State.StateValue>
  where
    First.State: ValueInitializedState, First.State.StateValue == Value?,
    Next.State: ValueInitializedState
  {
    // Looked up by each reader: nobody holds the store between.
    let values = StreamSource { [self] in store(for: first).values.source.subscribe($0) }
    return OperationChain(StateStream(values), client: self) { $0.map(next) }
  }
}
