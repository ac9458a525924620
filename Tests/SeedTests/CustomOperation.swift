// swift-format-ignore-file: UseLetInEveryBoundCaseVariable
import Foundation
import SharingOperation
import Testing

// The whole of the article on a custom operation type.

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

extension RecursiveRequest {
  func run(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    with continuation: OperationContinuation<NodeValue, any Error>
  ) async throws -> NodeValue {
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

private protocol _RecursiveStateProtocol: OperationState
where
  StateValue: RecursiveValue<NodeID>,
  OperationValue: RecursiveValue<NodeID>,
  StatusValue: RecursiveValue<NodeID>
{
  associatedtype NodeID: Sendable
}

private struct RecursiveState<
  Value: RecursiveValue
>: _RecursiveStateProtocol {
  typealias StateValue = Value
  typealias OperationValue = Value
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

  mutating func update(
    with result: Result<OperationValue, any Error>,
    for task: OperationTask<OperationValue, any Error>
  ) {
    update(with: result, using: task.context)
  }

  mutating func finishFetchTask(_ task: OperationTask<OperationValue, any Error>) {
    activeTasks.remove(id: task.id)
  }

  mutating func reset(using context: OperationContext) -> ResetEffect {
    let tasksToCancel = activeTasks
    self = Self(initialValue: initialValue)
    return ResetEffect(tasksToCancel: tasksToCancel)
  }
}

extension OperationStore where State: _RecursiveStateProtocol {
  func fetchTree(
    for id: State.NodeID,
    using context: OperationContext? = nil
  ) async throws -> State.OperationValue {
    var context = context ?? self.context
    context.recursiveValues.nodeId = id
    return try await run(using: context)
  }
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

private struct Comment: RecursiveValue, Sendable {
  let nodeId: Int
  var children = [Comment]()
}

extension Comment {
  static func threadQuery(
    for id: Int
  ) -> some RecursiveRequest<Comment, Int> {
    ThreadQuery(rootNodeId: id)
  }

  struct ThreadQuery: RecursiveRequest, Hashable {
    let rootNodeId: Int

    func fetchTree(
      isolation: isolated (any Actor)?,
      for id: Int,
      in context: OperationContext,
      with continuation: OperationContinuation<Comment, any Error>
    ) async throws -> Comment {
      try await Backend.current.respond(to: "comments below \(id)")
      let replies = repliesByComment[id, default: []]
      return Comment(nodeId: id, children: replies.map { Comment(nodeId: $0) })
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

@Suite struct CustomOperationTests {
  @Test("A fetched subtree is stored at its node in the tree")
  func merging() async throws {
    try await withBackend { _, _ async throws in
      let client = OperationClient()
      let store = client.store(
        for: Comment.threadQuery(for: 0),
        initialState: RecursiveState(initialValue: Comment(nodeId: 0))
      )
      try await store.run()
      let subtree = try await store.fetchTree(for: 10)
      #expect(subtree.outline == "10(11 12)")
      #expect(store.currentValue.outline == "0(10(11 12) 20)")
    }
  }

  @Test("Two subtrees are fetched in parallel, and neither removes the other")
  func sideBySide() async throws {
    try await withBackend { backend, client async throws in
      let store = makeStore(in: client)
      try await store.run()
      backend.hold("comments below 10")
      backend.hold("comments below 20")
      async let ten = store.fetchTree(for: 10)
      async let twenty = store.fetchTree(for: 20)
      await backend.calls(atLeast: 3)
      #expect(store.activeTasks.count == 2)
      backend.release("comments below 20")
      #expect(try await twenty.outline == "20(21)")
      #expect(store.isLoading)
      backend.release("comments below 10")
      #expect(try await ten.outline == "10(11 12)")
      #expect(store.currentValue.outline == "0(10(11 12) 20(21))")
      #expect(!store.isLoading)
    }
  }

  @Test("The value can be set to a node of the tree, and to the whole tree")
  func setting() async throws {
    try await withBackend { _, client async throws in
      let store = makeStore(in: client)
      try await store.run()
      store.currentValue = Comment(nodeId: 20, children: [Comment(nodeId: 29)])
      #expect(store.currentValue.outline == "0(10 20(29))")
      store.setResult(to: .failure(Backend.Refused()))
      #expect(store.error is Backend.Refused)
      #expect(store.currentValue.outline == "0(10 20(29))")
    }
  }

  @Test("A reset cancels the tasks of its effect, and the state has no error")
  func reset() async throws {
    try await withBackend { backend, client async throws in
      let store = makeStore(in: client)
      try await store.run()
      backend.hold("comments below 10")
      let subtree = Task { try await store.fetchTree(for: 10) }
      await backend.calls(atLeast: 2)
      let task = try #require(store.activeTasks.first)
      store.resetState()
      await #expect(throws: CancellationError.self) { try await subtree.value }
      backend.release("comments below 10")
      #expect(task.isCancelled)
      #expect(store.currentValue.outline == "0")
      #expect(store.error == nil)
      #expect(store.valueUpdateCount == 0)
    }
  }

  @Test("The modifiers for any request apply to a custom operation type")
  func modifiers() async throws {
    try await withBackend { backend, client async throws in
      let request = Comment.threadQuery(for: 0).retry(limit: 1).backoff(.noBackoff)
        .deduplicated { $0.recursiveValues.nodeId as? Int == $1.recursiveValues.nodeId as? Int }
      let store = client.store(
        for: request, initialState: RecursiveState(initialValue: Comment(nodeId: 0)))
      backend.refuse("comments below 0")
      try await store.run()
      #expect(backend.calls.count == 2)
      backend.hold("comments below 10")
      // Immediate, so that both callers have started before the response can arrive.
      let first = Task.immediate { try await store.fetchTree(for: 10).outline }
      let second = Task.immediate { try await store.fetchTree(for: 10).outline }
      _ = try await store.fetchTree(for: 20)
      backend.release("comments below 10")
      #expect(try await first.value == "10(11 12)")
      #expect(try await second.value == "10(11 12)")
      #expect(backend.calls.filter { $0 == "comments below 10" }.count == 1)
    }
  }

  private func makeStore(in client: OperationClient) -> OperationStore<RecursiveState<Comment>> {
    client.store(
      for: Comment.threadQuery(for: 0),
      initialState: RecursiveState(initialValue: Comment(nodeId: 0)))
  }
}
