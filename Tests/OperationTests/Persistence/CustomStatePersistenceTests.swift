import FoundationEssentials
import Operation
import Testing

/// A custom state that adds up the results of its runs, and can be saved.
private struct SumState: PersistableState {
  typealias StateValue = Int
  typealias OperationValue = Int
  typealias StatusValue = Int

  struct Saved: Codable, Sendable {
    let sum: Int
    let count: Int
  }

  var currentValue = 0
  let initialValue = 0
  var valueUpdateCount = 0
  var valueLastUpdatedAt: Date?
  var error: (any Error)?
  var errorUpdateCount = 0
  var errorLastUpdatedAt: Date?
  var isRestoring = false
  var taskIDs: Set<OperationTaskID> = []

  var isLoading: Bool { !taskIDs.isEmpty }
  var savedValue: Saved? {
    valueUpdateCount == 0 ? nil : Saved(sum: currentValue, count: valueUpdateCount)
  }

  mutating func setRestoring(_ isRestoring: Bool) { self.isRestoring = isRestoring }

  mutating func restore(_ saved: Saved, from date: Date) {
    currentValue = saved.sum
    valueUpdateCount = saved.count
    valueLastUpdatedAt = date
  }

  mutating func scheduleFetchTask(_ task: inout OperationTask<Int, any Error>) {
    taskIDs.insert(task.id)
  }

  mutating func update(with result: Result<Int, any Error>, using context: OperationContext) {
    switch result {
    case .success(let value):
      currentValue += value
      valueUpdateCount += 1
      valueLastUpdatedAt = context.operationClock.now()
    case .failure(let failure): error = failure
    }
  }

  mutating func update(
    with result: Result<Int, any Error>, for task: OperationTask<Int, any Error>
  ) { update(with: result, using: task.context) }

  mutating func finishFetchTask(_ task: OperationTask<Int, any Error>) { taskIDs.remove(task.id) }

  mutating func reset(using context: OperationContext) -> ResetEffect {
    self = SumState()
    return ResetEffect()
  }
}

private struct SumRequest: StatefulOperationRequest {
  typealias State = SumState
  typealias Value = Int
  typealias Failure = any Error

  var path: OperationPath { ["sum"] }

  func run(
    isolation: isolated (any Actor)?, in context: OperationContext,
    with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int { 5 }
}

@Suite("Saved values of custom states")
struct CustomStatePersistenceTests {
  @Test("A custom state is saved and restored in its own form")
  func custom() async throws {
    let storage = MemoryStorage()
    let client = OperationClient(defaults: .testing, storage: storage)
    let store = client.store(for: SumRequest().persisted(), initialState: SumState())
    for await state in store.states where !state.isRestoring { break }
    try await store.run()
    let count = store.valueUpdateCount
    try await client.flush()

    let next = OperationClient(defaults: .testing, storage: storage)
    let restored = next.store(for: SumRequest().manual().persisted(), initialState: SumState())
    for await state in restored.states where !state.isRestoring { break }
    #expect(restored.currentValue == 5 * count)
    #expect(restored.valueUpdateCount == count)
    #expect(restored.valueLastUpdatedAt == store.valueLastUpdatedAt)
  }

  @Test("Saved entries without a store are removed by the path of one store")
  func clearWithoutStore() async throws {
    let storage = MemoryStorage()
    let query = Query<Int, any Error>(path: ["a"]) { _ in 1 }.persisted()
    let child = Query<Int, any Error>(path: ["a", "b"]) { _ in 1 }.persisted()
    let client = OperationClient(defaults: .testing, storage: storage)
    try await client.fetch(query)
    try await client.fetch(child)
    try await client.flush()
    let next = OperationClient(defaults: .testing, storage: storage)
    next.clearStore(with: ["a"])
    try await next.flush()
    #expect(Array(storage.entries.keys) == ["values/a/b"])
  }
}
