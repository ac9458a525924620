// swift-format-ignore-file: UseLetInEveryBoundCaseVariable
import Foundation
import SharingOperation
import Testing

// The recursive operation as the article on custom operation types builds it, step by step: every
// intermediate form of a declaration.

/// The request has a type of node identifiers.
private enum WithNodes {
  protocol RecursiveRequest: StatefulOperationRequest {
    associatedtype NodeID: Sendable
  }
}

private protocol RecursiveValue<NodeID>: Sendable {
  associatedtype NodeID: Sendable & Equatable

  var nodeId: NodeID { get }
  var children: [Self] { get set }
}

extension RecursiveValue {
  // Convenience subscript to get and set any node in the tree.
  subscript(id nodeId: NodeID) -> Self? {
    get {
      if self.nodeId == nodeId { return self }
      return children.lazy.compactMap { $0[id: nodeId] }.first
    }
    set {
      if self.nodeId == nodeId {
        if let newValue { self = newValue }
      } else {
        for index in children.indices { children[index][id: nodeId] = newValue }
      }
    }
  }
}

/// Its value is a tree.
private enum WithTrees {
  protocol RecursiveRequest<NodeValue, NodeID>: StatefulOperationRequest
  where Value == NodeValue {
    associatedtype NodeValue: RecursiveValue<NodeID>
    associatedtype NodeID: Sendable
  }
}

/// It fetches subtrees.
private enum WithSubtrees {
  protocol RecursiveRequest<NodeValue, NodeID>: StatefulOperationRequest
  where Value == NodeValue {
    associatedtype NodeValue: RecursiveValue<NodeID>
    associatedtype NodeID: Sendable

    func fetchTree(
      isolation: isolated (any Actor)?,
      for id: NodeID,
      in context: OperationContext,
      with continuation: OperationContinuation<NodeValue, any Error>
    ) async throws -> NodeValue
  }
}

/// It has the identifier of the root.
private enum WithRoot {
  protocol RecursiveRequest<NodeValue, NodeID>: StatefulOperationRequest
  where Value == NodeValue {
    associatedtype NodeValue: RecursiveValue<NodeID>
    associatedtype NodeID: Sendable

    var rootNodeId: NodeID { get }

    func fetchTree(
      isolation: isolated (any Actor)?,
      for id: NodeID,
      in context: OperationContext,
      with continuation: OperationContinuation<NodeValue, any Error>
    ) async throws -> NodeValue
  }
}

/// It has a state of its own.
private protocol RecursiveRequest<NodeValue, NodeID>: StatefulOperationRequest
where Value == NodeValue, State == RecursiveState<Value> {
  associatedtype NodeValue: RecursiveValue<NodeID>
  associatedtype NodeID: Sendable

  var rootNodeId: NodeID { get }

  func fetchTree(
    isolation: isolated (any Actor)?,
    for id: NodeID,
    in context: OperationContext,
    with continuation: OperationContinuation<NodeValue, any Error>
  ) async throws -> NodeValue
}

/// The state conforms to the library's protocol, and in an extension to the intermediate one. Both
/// of its updates are written out.
private struct RecursiveState<Value: RecursiveValue>: OperationState {
  typealias StateValue = Value
  typealias QueryValue = Value
  typealias StatusValue = Value

  private(set) var currentValue: Value
  let initialValue: Value
  private(set) var valueUpdateCount = 0
  private(set) var valueLastUpdatedAt: Date?
  private(set) var error: (any Error)?
  private(set) var errorUpdateCount = 0
  private(set) var errorLastUpdatedAt: Date?
  private(set) var activeTasks = IdentifiedArrayOf<OperationTask<Value, any Error>>()

  init(initialValue: Value) {
    self.currentValue = initialValue
    self.initialValue = initialValue
  }

  var isLoading: Bool {
    !self.activeTasks.isEmpty
  }

  mutating func scheduleFetchTask(_ task: inout OperationTask<Value, any Error>) {
    activeTasks.append(task)
  }

  mutating func update(
    with result: Result<QueryValue, any Error>,
    for task: OperationTask<QueryValue, any Error>
  ) {
    let context = task.configuration.context
    switch result {
    case let .success(value):
      self.currentValue[id: value.nodeId] = value
      self.valueUpdateCount += 1
      self.valueLastUpdatedAt = context.operationClock.now()
      self.error = nil
    case let .failure(error):
      self.error = error
      self.errorUpdateCount += 1
      self.errorLastUpdatedAt = context.operationClock.now()
    }
  }

  mutating func finishFetchTask(_ task: OperationTask<QueryValue, any Error>) {
    activeTasks.remove(id: task.id)
  }

  mutating func update(
    with result: Result<StateValue, any Error>,
    using context: OperationContext
  ) {
    switch result {
    case let .success(value):
      self.currentValue[id: value.nodeId] = value
      self.valueUpdateCount += 1
      self.valueLastUpdatedAt = context.operationClock.now()
      self.error = nil
    case let .failure(error):
      self.error = error
      self.errorUpdateCount += 1
      self.errorLastUpdatedAt = context.operationClock.now()
    }
  }

  mutating func reset(using context: OperationContext) -> ResetEffect {
    let tasksToCancel = activeTasks
    self = Self(initialValue: initialValue)
    return ResetEffect(tasksToCancel: tasksToCancel)
  }
}

private protocol _RecursiveStateProtocol: OperationState
where
  StateValue: RecursiveValue<NodeID>,
  OperationValue: RecursiveValue<NodeID>,
  StatusValue: RecursiveValue<NodeID>
{
  associatedtype NodeID: Sendable
}

extension RecursiveState: _RecursiveStateProtocol {
  typealias NodeID = Value.NodeID
}

private struct RecursiveContextValues: Sendable {
  var nodeId: (any Sendable)?
}

extension OperationContext {
  fileprivate var recursiveValues: RecursiveContextValues {
    get { self[RecursiveContextValuesKey.self] }
    set { self[RecursiveContextValuesKey.self] = newValue }
  }

  private enum RecursiveContextValuesKey: Key {
    static var defaultValue: RecursiveContextValues {
      RecursiveContextValues()
    }
  }
}

extension OperationStore where State: _RecursiveStateProtocol {
  func fetchTree(
    for id: State.NodeID,
    using context: OperationContext? = nil
  ) async throws -> State.Value {
    var context = context ?? self.context
    context.recursiveValues.nodeId = id
    return try await run(using: context)
  }
}

extension RecursiveRequest {
  func run(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    with continuation: OperationContinuation<Value, any Error>
  ) async throws -> Value {
    if let nodeId = context.recursiveValues.nodeId as? NodeID {
      return try await fetchTree(
        isolation: isolation,
        for: nodeId,
        in: context,
        with: continuation
      )
    } else {
      return try await fetchTree(
        isolation: isolation,
        for: rootNodeId,
        in: context,
        with: continuation
      )
    }
  }
}

private struct Comment: RecursiveValue, Sendable {
  let nodeId: Int
  var children = [Comment]()
}

private struct ThreadQuery: RecursiveRequest, Hashable {
  let rootNodeId: Int

  func fetchTree(
    isolation: isolated (any Actor)?,
    for id: Int,
    in context: OperationContext,
    with continuation: OperationContinuation<Comment, any Error>
  ) async throws -> Comment {
    continuation.yield(Comment(nodeId: id))
    try await Backend.current.respond(to: "comments below \(id)")
    let replies = repliesByComment[id, default: []]
    return Comment(nodeId: id, children: replies.map { Comment(nodeId: $0) })
  }
}

/// The intermediate forms, with a request that conforms to them.
private struct EarlierQuery: WithNodes.RecursiveRequest, WithTrees.RecursiveRequest,
  WithSubtrees.RecursiveRequest, WithRoot.RecursiveRequest, Hashable
{
  typealias State = QueryState<Comment, any Error>

  var rootNodeId: Int { 0 }

  func fetchTree(
    isolation: isolated (any Actor)?,
    for id: Int,
    in context: OperationContext,
    with continuation: OperationContinuation<Comment, any Error>
  ) async throws -> Comment {
    Comment(nodeId: id)
  }

  func run(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    with continuation: OperationContinuation<Comment, any Error>
  ) async throws -> Comment {
    try await fetchTree(isolation: isolation, for: rootNodeId, in: context, with: continuation)
  }
}

@Suite struct CustomOperationStepsTests {
  @Test("The earlier forms of the request are requests that a store runs")
  func forms() async throws {
    try await withBackend { _, client async throws in
      #expect(try await client.store(for: EarlierQuery()).run().nodeId == 0)
    }
  }

  @Test("The state stores yielded values, results and errors, with their dates")
  func updates() async throws {
    let clock = ManualClock()
    try await withBackend(clock: clock) { backend, client async throws in
      let store = client.store(
        for: ThreadQuery(rootNodeId: 0),
        initialState: RecursiveState(initialValue: Comment(nodeId: 0))
      )
      try await store.run()
      #expect(store.valueUpdateCount == 2)
      #expect(try await store.fetchTree(for: 20).children.map(\.nodeId) == [21])
      #expect(store.currentValue[id: 21] != nil)
      await clock.advance(by: .seconds(9))
      backend.refuse("comments below 10")
      await #expect(throws: Backend.Refused.self) { try await store.fetchTree(for: 10) }
      #expect(store.errorLastUpdatedAt == clock.now())
      #expect(store.currentValue[id: 21] != nil)
    }
  }
}
