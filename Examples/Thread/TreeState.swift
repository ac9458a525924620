import Foundation
import SharingOperation

/// The state of a tree: plain data that the store changes.
///
/// A state that can begin with a value, and has an empty one, needs nothing else for
/// `client.store(for:)` and for `@SharedQuery`.
struct TreeState<Value: TreeValue>: TreeStateProtocol, ValueInitializedState {
  typealias NodeID = Value.NodeID
  typealias StateValue = Value?
  typealias OperationValue = Value
  typealias StatusValue = Value

  private(set) var currentValue: Value?
  let initialValue: Value?
  private(set) var valueUpdateCount = 0
  private(set) var valueLastUpdatedAt: Date?
  private(set) var error: (any Error)?
  private(set) var errorUpdateCount = 0
  private(set) var errorLastUpdatedAt: Date?
  private(set) var activeTasks = IdentifiedArrayOf<OperationTask<Value, any Error>>()

  init(initialValue: Value?) {
    currentValue = initialValue
    self.initialValue = initialValue
  }

  static var emptyValue: Value? { nil }

  var isLoading: Bool { !activeTasks.isEmpty }
}

extension TreeState {
  /// Adds a task that is about to run.
  ///
  /// It waits for the fetches whose subtrees overlap with its own, such as that of its parent,
  /// whose later result would overwrite it. All others run in parallel.
  mutating func scheduleFetchTask(_ task: inout OperationTask<Value, any Error>) {
    for other in activeTasks where mayOverlap(task.context, other.context) {
      task.schedule(after: other)
    }
    activeTasks.append(task)
  }

  /// Returns whether one of two subtrees may contain the other. A node that was not fetched yet can
  /// be anywhere.
  private func mayOverlap(_ first: OperationContext, _ second: OperationContext) -> Bool {
    guard let firstID = first.treeNode as? NodeID, let secondID = second.treeNode as? NodeID,
      let first = currentValue?[id: firstID], let second = currentValue?[id: secondID]
    else { return true }
    return first[id: secondID] != nil || second[id: firstID] != nil
  }

  mutating func finishFetchTask(_ task: OperationTask<Value, any Error>) {
    activeTasks.remove(id: task.id)
  }

  mutating func reset(using context: OperationContext) -> ResetEffect {
    defer { self = TreeState(initialValue: initialValue) }
    return ResetEffect(tasksToCancel: activeTasks)
  }
}

extension TreeState {
  /// Stores the result of a run: the whole tree, or a subtree, which is dropped without a tree.
  mutating func update(
    with result: Result<Value, any Error>, for task: OperationTask<Value, any Error>
  ) {
    let isWhole = task.context.treeNode == nil
    if case .success = result, !isWhole, currentValue == nil { return }
    update(with: result, at: task.context.operationClock.now()) { tree, value in
      if isWhole { tree = value } else { tree?[id: value.nodeId] = value }
    }
  }

  /// Stores a tree that was set.
  mutating func update(with result: Result<Value?, any Error>, using context: OperationContext) {
    update(with: result, at: context.operationClock.now()) { $0 = $1 }
  }

  private mutating func update<Update>(
    with result: Result<Update, any Error>, at date: Date, _ apply: (inout Value?, Update) -> Void
  ) {
    switch result {
    case .success(let update):
      apply(&currentValue, update)
      valueUpdateCount += 1
      valueLastUpdatedAt = date
      error = nil
    case .failure(let failure):
      error = failure
      errorUpdateCount += 1
      errorLastUpdatedAt = date
    }
  }
}
