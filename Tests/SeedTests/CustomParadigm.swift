// swift-format-ignore-file: UseLetInEveryBoundCaseVariable
import Foundation
import SharingOperation
import Testing

// The whole of the article on a custom fetching paradigm.

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

private protocol RecursiveQueryRequest<Value, NodeID>: QueryRequest
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
      return try await fetchTree(
        for: nodeId,
        in: context,
        with: continuation
      )
    } else {
      return try await fetchTree(
        for: rootNodeId,
        in: context,
        with: continuation
      )
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

private struct RecursiveQueryState<
  Value: RecursiveValue
>: _RecursiveQueryStateProtocol {
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
    let tasksToCancel = activeTasks
    self = Self(initialValue: initialValue)
    return ResetEffect(tasksToCancel: tasksToCancel)
  }
}

extension QueryStore where State: _RecursiveQueryStateProtocol {
  func fetchTree(
    for id: State.NodeID,
    using configuration: QueryTaskConfiguration? = nil
  ) async throws -> State.QueryValue {
    var configuration =
      configuration
      ?? QueryTaskConfiguration(context: context)
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

extension Comment {
  static func threadQuery(
    for id: Int
  ) -> some RecursiveQueryRequest<Comment, Int> {
    ThreadQuery(rootNodeId: id)
  }

  struct ThreadQuery: RecursiveQueryRequest, Hashable {
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
}

/// The state of the article before one of its updates calls the other.
private enum WithBothUpdates {
  struct RecursiveQueryState<Value: RecursiveValue>: QueryStateProtocol {
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
      let context = task.configuration.context
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

    mutating func finishFetchTask(_ task: QueryTask<QueryValue>) {
      activeTasks.remove(id: task.id)
    }

    mutating func update(with result: Result<StateValue, any Error>, using context: QueryContext) {
      currentValue = (try? result.get()) ?? currentValue
    }

    mutating func reset(using context: QueryContext) -> ResetEffect {
      let tasksToCancel = activeTasks
      self = Self(initialValue: initialValue)
      return ResetEffect(tasksToCancel: tasksToCancel)
    }
  }

  struct ThreadQuery: QueryRequest, Hashable {
    typealias State = RecursiveQueryState<Comment>

    func fetch(
      in context: QueryContext, with continuation: QueryContinuation<Comment>
    ) async throws -> Comment {
      Comment(nodeId: 0, children: [Comment(nodeId: 1)])
    }
  }
}

extension RecursiveValue {
  /// The tree in one line.
  fileprivate var outline: String {
    let replies = children.map(\.outline).joined(separator: " ")
    return replies.isEmpty ? "\(nodeId)" : "\(nodeId)(\(replies))"
  }
}

@Suite struct CustomParadigmTests {
  @Test("A query behind `some RecursiveQueryRequest` fetches subtrees, too")
  func merging() async throws {
    try await withBackend { _, _ async throws in
      let client = QueryClient()
      let store = client.store(
        for: Comment.threadQuery(for: 0),
        initialState: RecursiveQueryState(initialValue: Comment(nodeId: 0))
      )
      try await store.fetch()
      try await _ = store.fetchTree(for: 20)
      #expect(store.currentValue.outline == "0(10 20(21))")
    }
  }

  @Test("A state with two separate updates stores a result, and can be reset")
  func bothUpdates() async throws {
    let clock = ManualClock()
    try await withBackend(clock: clock) { _, client async throws in
      let store = client.store(
        for: WithBothUpdates.ThreadQuery(),
        initialState: WithBothUpdates.RecursiveQueryState(initialValue: Comment(nodeId: 0)))
      try await store.fetch()
      #expect(store.currentValue.outline == "0(1)")
      #expect(store.valueLastUpdatedAt == clock.now())
      store.resetState()
      #expect(store.currentValue.outline == "0")
    }
  }

  @Test("A failure does not change the tree, and has the date of the query clock")
  func failure() async throws {
    let clock = ManualClock()
    try await withBackend(clock: clock) { backend, client async throws in
      let store = client.store(
        for: Comment.threadQuery(for: 0),
        initialState: RecursiveQueryState(initialValue: Comment(nodeId: 0))
      )
      try await store.fetch()
      let date = clock.now()
      await clock.advance(by: .seconds(60))
      backend.refuse("comments below 10")
      await #expect(throws: Backend.Refused.self) { try await store.fetchTree(for: 10) }
      #expect(store.currentValue.outline == "0(10 20)")
      #expect(store.error is Backend.Refused)
      #expect(store.valueLastUpdatedAt == date)
      #expect(store.errorLastUpdatedAt == date + 60)
      try await _ = store.fetchTree(for: 10)
      #expect(store.error == nil)
    }
  }

  @Test("The name and the context of a configuration reach the fetch of a subtree")
  func configuration() async throws {
    try await withBackend { backend, client async throws in
      let store = client.store(
        for: Comment.threadQuery(for: 0),
        initialState: RecursiveQueryState(initialValue: Comment(nodeId: 0))
      )
      backend.hold("comments below 20")
      let configuration = QueryTaskConfiguration(name: "twenty", context: store.context)
      async let subtree = store.fetchTree(for: 20, using: configuration)
      await backend.calls(atLeast: 1)
      let task = try #require(store.activeTasks.first)
      #expect(task.configuration.name == "twenty")
      #expect(task.configuration.context.recursiveValues.nodeId as? Int == 20)
      backend.release("comments below 20")
      #expect(try await subtree.outline == "20(21)")
    }
  }
}
