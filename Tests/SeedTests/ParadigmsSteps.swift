// swift-format-ignore-file: UseLetInEveryBoundCaseVariable
import Foundation
import SharingOperation
import Testing

// The recursive paradigm as the articles on paradigms build it, step by step: every intermediate
// form of a declaration.

/// The request has a type of node identifiers.
private enum WithNodes {
  protocol RecursiveQueryRequest: QueryRequest {
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
  protocol RecursiveQueryRequest: QueryRequest
  where Value: RecursiveValue<NodeID> {
    associatedtype NodeID: Sendable
  }
}

/// It fetches subtrees.
private enum WithSubtrees {
  protocol RecursiveQueryRequest: QueryRequest
  where Value: RecursiveValue<NodeID> {
    associatedtype NodeID: Sendable

    func fetchTree(
      for id: NodeID,
      in context: QueryContext,
      with continuation: QueryContinuation<Value>
    ) async throws -> Value
  }
}

/// It has the identifier of the root.
private enum WithRoot {
  protocol RecursiveQueryRequest: QueryRequest
  where Value: RecursiveValue<NodeID> {
    associatedtype NodeID: Sendable

    var rootNodeId: NodeID { get }

    func fetchTree(
      for id: NodeID,
      in context: QueryContext,
      with continuation: QueryContinuation<Value>
    ) async throws -> Value
  }
}

/// It has a state of its own.
private protocol RecursiveQueryRequest: QueryRequest
where Value: RecursiveValue<NodeID>, State == RecursiveQueryState<Value> {
  associatedtype NodeID: Sendable

  var rootNodeId: NodeID { get }

  func fetchTree(
    for id: NodeID,
    in context: QueryContext,
    with continuation: QueryContinuation<Value>
  ) async throws -> Value
}

/// The state conforms to the library's protocol, and in an extension to the intermediate one. Both
/// of its updates are written out.
private struct RecursiveQueryState<Value: RecursiveValue>: QueryStateProtocol {
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
  private(set) var activeTasks = IdentifiedArrayOf<QueryTask<Value>>()

  init(initialValue: Value) {
    self.currentValue = initialValue
    self.initialValue = initialValue
  }

  var isLoading: Bool {
    !self.activeTasks.isEmpty
  }

  mutating func scheduleFetchTask(_ task: inout QueryTask<Value>) {
    activeTasks.append(task)
  }

  mutating func update(
    with result: Result<QueryValue, any Error>,
    for task: QueryTask<QueryValue>
  ) {
    switch result {
    case let .success(value):
      self.currentValue[id: value.nodeId] = value
      self.valueUpdateCount += 1
      self.valueLastUpdatedAt = task.configuration.context.queryClock.now()
      self.error = nil
    case let .failure(error):
      self.error = error
      self.errorUpdateCount += 1
      self.errorLastUpdatedAt = task.configuration.context.queryClock.now()
    }
  }

  mutating func finishFetchTask(_ task: QueryTask<QueryValue>) {
    activeTasks.remove(id: task.id)
  }

  mutating func update(
    with result: Result<StateValue, any Error>,
    using context: QueryContext
  ) {
    switch result {
    case let .success(value):
      self.currentValue[id: value.nodeId] = value
      self.valueUpdateCount += 1
      self.valueLastUpdatedAt = context.queryClock.now()
      self.error = nil
    case let .failure(error):
      self.error = error
      self.errorUpdateCount += 1
      self.errorLastUpdatedAt = context.queryClock.now()
    }
  }

  mutating func reset(using context: QueryContext) -> ResetEffect {
    for task in activeTasks {
      task.cancel()
    }
    self = Self(initialValue: initialValue)
    return ResetEffect()
  }
}

private protocol _RecursiveQueryStateProtocol: QueryStateProtocol
where
  StateValue: RecursiveValue<NodeID>,
  QueryValue: RecursiveValue<NodeID>,
  StatusValue: RecursiveValue<NodeID>
{
  associatedtype NodeID: Sendable
}

extension RecursiveQueryState: _RecursiveQueryStateProtocol {
  typealias NodeID = Value.NodeID
}

private struct RecursiveQueryContextValues: Sendable {
  var nodeId: (any Sendable)?
}

extension QueryContext {
  fileprivate var recursiveValues: RecursiveQueryContextValues {
    get { self[RecursiveQueryContextValuesKey.self] }
    set { self[RecursiveQueryContextValuesKey.self] = newValue }
  }

  private enum RecursiveQueryContextValuesKey: Key {
    static var defaultValue: RecursiveQueryContextValues {
      RecursiveQueryContextValues()
    }
  }
}

extension QueryStore where State: _RecursiveQueryStateProtocol {
  func fetchTree(
    for id: State.NodeID,
    using configuration: QueryTaskConfiguration? = nil
  ) async throws -> State.QueryValue {
    var configuration = configuration ?? QueryTaskConfiguration(context: context)
    configuration.context.recursiveValues.nodeId = id
    return try await fetch(using: configuration)
  }
}

extension RecursiveQueryRequest {
  func fetch(
    in context: QueryContext,
    with continuation: QueryContinuation<Value>
  ) async throws -> Value {
    if let nodeId = context.recursiveValues.nodeId as? NodeID {
      return try await fetchTree(for: nodeId, in: context, with: continuation)
    } else {
      return try await fetchTree(for: rootNodeId, in: context, with: continuation)
    }
  }
}

private struct Comment: RecursiveValue, Sendable {
  let nodeId: Int
  var children = [Comment]()
}

private struct CommentThreadQuery: RecursiveQueryRequest, Hashable {
  typealias Value = Comment
  typealias NodeID = Int

  let rootNodeId: Int

  func fetchTree(
    for id: Int,
    in context: QueryContext,
    with continuation: QueryContinuation<Comment>
  ) async throws -> Comment {
    continuation.yield(Comment(nodeId: id))
    try await Backend.current.respond(to: "comments below \(id)")
    let replies = repliesByComment[id, default: []]
    return Comment(nodeId: id, children: replies.map { Comment(nodeId: $0) })
  }
}

/// The intermediate forms, each with a query that conforms to it.
private struct NodesQuery: WithNodes.RecursiveQueryRequest, Hashable {
  typealias NodeID = Int

  func fetch(
    in context: QueryContext, with continuation: QueryContinuation<Comment>
  ) async throws -> Comment {
    Comment(nodeId: 0)
  }
}

private struct TreesQuery: WithTrees.RecursiveQueryRequest, Hashable {
  typealias NodeID = Int

  func fetch(
    in context: QueryContext, with continuation: QueryContinuation<Comment>
  ) async throws -> Comment {
    Comment(nodeId: 0)
  }
}

private struct RootQuery: WithSubtrees.RecursiveQueryRequest, WithRoot.RecursiveQueryRequest,
  Hashable
{
  typealias NodeID = Int

  var rootNodeId: Int { 0 }

  func fetchTree(
    for id: Int,
    in context: QueryContext,
    with continuation: QueryContinuation<Comment>
  ) async throws -> Comment {
    Comment(nodeId: id)
  }

  func fetch(
    in context: QueryContext, with continuation: QueryContinuation<Comment>
  ) async throws -> Comment {
    try await fetchTree(for: rootNodeId, in: context, with: continuation)
  }
}

@Suite struct ParadigmsStepsTests {
  @Test("Every form of the request is a query that a store runs")
  func forms() async throws {
    try await withBackend { _, client async throws in
      #expect(try await client.store(for: NodesQuery()).fetch().nodeId == 0)
      #expect(try await client.store(for: TreesQuery()).fetch().nodeId == 0)
      #expect(try await client.store(for: RootQuery()).fetch().nodeId == 0)
    }
  }

  @Test("The state stores yielded values, results, errors and values that are set")
  func updates() async throws {
    try await withBackend { backend, client async throws in
      let store = client.store(
        for: CommentThreadQuery(rootNodeId: 0),
        initialState: RecursiveQueryState(initialValue: Comment(nodeId: 0))
      )
      try await store.fetch()
      #expect(store.valueUpdateCount == 2)
      #expect(store.currentValue.children.map(\.nodeId) == [10, 20])
      let subtree = try await store.fetchTree(for: 20)
      #expect(subtree.children.map(\.nodeId) == [21])
      #expect(store.currentValue[id: 21] != nil)
      backend.refuse("comments below 10")
      await #expect(throws: Backend.Refused.self) { try await store.fetchTree(for: 10) }
      #expect(store.errorUpdateCount == 1)
      store.currentValue = Comment(nodeId: 10, children: [Comment(nodeId: 19)])
      #expect(store.currentValue[id: 19] != nil && store.currentValue[id: 21] != nil)
      #expect(store.error == nil)
    }
  }
}
