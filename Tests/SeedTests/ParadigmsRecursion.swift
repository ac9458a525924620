// swift-format-ignore-file: UseLetInEveryBoundCaseVariable
import Foundation
import SharingOperation
import Testing

// The recursive paradigm at the end of the article on queries, infinite queries and mutations: a
// state that cancels its tasks itself.

private protocol RecursiveValue<NodeID>: Sendable {
  associatedtype NodeID: Sendable & Equatable

  var nodeId: NodeID { get }
  var children: [Self] { get set }
}

extension RecursiveValue {
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

private protocol _RecursiveQueryStateProtocol: QueryStateProtocol
where
  StateValue: RecursiveValue<NodeID>,
  QueryValue: RecursiveValue<NodeID>,
  StatusValue: RecursiveValue<NodeID>
{
  associatedtype NodeID: Sendable
}

private struct RecursiveQueryState<Value: RecursiveValue>: _RecursiveQueryStateProtocol {
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

  mutating func update(
    with result: Result<QueryValue, any Error>,
    for task: QueryTask<QueryValue>
  ) {
    update(with: result, using: task.configuration.context)
  }

  mutating func finishFetchTask(_ task: QueryTask<QueryValue>) {
    activeTasks.remove(id: task.id)
  }

  mutating func reset(using context: QueryContext) -> ResetEffect {
    for task in activeTasks {
      task.cancel()
    }
    self = Self(initialValue: initialValue)
    return ResetEffect()
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
    try await Backend.current.respond(to: "comments below \(id)")
    let replies = repliesByComment[id, default: []]
    return Comment(nodeId: id, children: replies.map { Comment(nodeId: $0) })
  }
}

extension RecursiveValue {
  /// The tree in one line.
  fileprivate var outline: String {
    let replies = children.map(\.outline).joined(separator: " ")
    return replies.isEmpty ? "\(nodeId)" : "\(nodeId)(\(replies))"
  }
}

@Suite struct ParadigmsRecursionTests {
  @Test("A fetched subtree is stored at its node in the tree")
  func merging() async throws {
    try await withBackend { _, _ async throws in
      let client = QueryClient()
      let store = client.store(
        for: CommentThreadQuery(rootNodeId: 0),
        initialState: RecursiveQueryState(initialValue: Comment(nodeId: 0))
      )
      try await store.fetch()
      #expect(store.currentValue.outline == "0(10 20)")
      let subtree = try await store.fetchTree(for: 10)
      #expect(subtree.outline == "10(11 12)")
      #expect(store.currentValue.outline == "0(10(11 12) 20)")
      #expect(store.valueUpdateCount == 2)
    }
  }

  @Test("A state can cancel its own tasks in its reset, and then has no error")
  func reset() async throws {
    try await withBackend { backend, client async throws in
      let store = client.store(
        for: CommentThreadQuery(rootNodeId: 0),
        initialState: RecursiveQueryState(initialValue: Comment(nodeId: 0))
      )
      try await store.fetch()
      backend.hold("comments below 10")
      let subtree = Task { try await store.fetchTree(for: 10) }
      await backend.calls(atLeast: 2)
      #expect(store.isLoading)
      let task = try #require(store.activeTasks.first)
      store.reset()
      await #expect(throws: CancellationError.self) { try await subtree.value }
      backend.release("comments below 10")
      #expect(task.isCancelled)
      #expect(store.currentValue.outline == "0")
      #expect(!store.isLoading)
      #expect(store.error == nil)
      #expect(store.errorUpdateCount == 0)
    }
  }
}
