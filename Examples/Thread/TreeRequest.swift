import SharingOperation

/// A value that has others of its kind below it.
protocol TreeValue<NodeID>: Sendable {
  associatedtype NodeID: Sendable & Equatable

  var nodeId: NodeID { get }
  var children: [Self] { get set }
}

extension TreeValue {
  /// The node with an identifier: this one, or one below it. Setting a node that does not exist
  /// changes nothing.
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

/// An operation type of this program's own: a request for a tree that is fetched piece by piece.
///
/// Beside this protocol it needs a state, ``TreeState``, and a method of the store, `fetchTree`.
/// Modifiers, clients, streams and wrappers accept it like a query.
protocol TreeRequest<NodeValue, NodeID>: StatefulOperationRequest
where Value == NodeValue, State == TreeState<NodeValue> {
  associatedtype NodeValue: TreeValue<NodeID>
  associatedtype NodeID: Sendable & Equatable

  /// The node at the top.
  var rootNodeId: NodeID { get }

  /// Fetches a node and the nodes below it.
  func fetchTree(for id: NodeID, in context: OperationContext) async throws -> NodeValue
}

extension TreeRequest {
  /// Fetches the subtree that the context names, and the whole tree if it names none.
  func run(
    isolation: isolated (any Actor)?, in context: OperationContext,
    with continuation: OperationContinuation<NodeValue, any Error>
  ) async throws -> NodeValue {
    try await fetchTree(for: context.treeNode as? NodeID ?? rootNodeId, in: context)
  }
}

/// The requirements of the store's extension for a state.
protocol TreeStateProtocol: OperationState {
  associatedtype NodeID: Sendable & Equatable
}

extension OperationStore where State: TreeStateProtocol {
  /// Fetches a node with the nodes below it, and stores it at its place in the tree.
  @discardableResult
  func fetchTree(
    for id: State.NodeID, using context: OperationContext? = nil
  ) async throws(State.Failure) -> State.OperationValue {
    var context = context ?? self.context
    context.treeNode = id
    return try await run(using: context)
  }
}

extension OperationContext {
  /// The node whose subtree a run fetches; `nil` for the whole tree.
  var treeNode: (any Sendable)? {
    get { self[TreeNodeKey.self] }
    set { self[TreeNodeKey.self] = newValue }
  }

  private enum TreeNodeKey: Key {
    static var defaultValue: (any Sendable)? { nil }
  }
}
