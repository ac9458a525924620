import Foundation
import Glibc
import ReactiveStreams
import Testing

@testable import Operation

/// A condition whose subscription starts a task.
private struct AskingCondition: OperationRunSpecification {
  let ask: @Sendable () async -> Void
  func isSatisfied(in context: OperationContext) -> Bool { true }
  func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    Task { await ask() }
    return .empty
  }
}

/// A state that cancels the earlier runs when a run calls its request.
private struct NewestState: OperationState {
  typealias StateValue = Int
  typealias OperationValue = Int
  typealias StatusValue = Int

  var currentValue = 0
  let initialValue = 0
  var valueUpdateCount = 0
  var valueLastUpdatedAt: Date?
  var error: (any Error)?
  var errorUpdateCount = 0
  var errorLastUpdatedAt: Date?
  var tasks: [OperationTask<Int, any Error>] = []
  var isLoading: Bool { !tasks.isEmpty }

  func willRun(in context: inout OperationContext) {
    for task in tasks where task.id != context.operationRun?.id { task.cancel() }
  }
  mutating func scheduleFetchTask(_ task: inout OperationTask<Int, any Error>) {
    tasks.append(task)
  }
  mutating func update(with result: Result<Int, any Error>, using context: OperationContext) {
    if case .success(let value) = result {
      currentValue = value
      valueUpdateCount += 1
      valueLastUpdatedAt = context.operationClock.now()
    }
  }
  mutating func update(
    with result: Result<Int, any Error>, for task: OperationTask<Int, any Error>
  ) { update(with: result, using: task.context) }
  mutating func finishFetchTask(_ task: OperationTask<Int, any Error>) {
    tasks.removeAll { $0.id == task.id }
  }
  mutating func reset(using context: OperationContext) -> ResetEffect { ResetEffect() }
}

private struct NewestQuery: StatefulOperationRequest {
  typealias State = NewestState
  typealias Value = Int
  typealias Failure = any Error
  let remote: Query<Int, any Error>
  var path: OperationPath { ["newest"] }
  func run(
    isolation: isolated (any Actor)?, in context: OperationContext,
    with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int {
    try await remote.run(isolation: isolation, in: context, with: continuation)
  }
}

/// What the library calls or releases, and what that may do there.
@Suite(.timeLimit(.minutes(5))) struct UserCodeTests {
  @Test("A task of a condition does not work for the run whose request has subscribed")
  func condition() async throws {
    let client = OperationClient(defaults: .testing)
    let (gate, answered) = (AsyncGate(), Monitor<String?>(nil))
    let token = Monitor<Query<Int, any Error>?>(nil)
    // The client retains the store, and that the condition.
    let condition = AskingCondition { [weak client] in
      do {
        guard let client, let query = token.value else { return }
        let value = try await client.fetch(query)
        answered.update { $0 = "\(value)" }
      } catch { answered.update { $0 = "\(error)" } }
    }
    let other = client.store(
      for: Query<Int, any Error>(path: ["other"]) { _ in 2 }.rerunOnChange(of: condition)
        .neverStale())
    other.currentValue = 3
    let query = Query<Int, any Error>(path: ["token"]) { _ in
      let subscription = other.subscribe { _ in }
      await gate.wait()
      subscription.cancel()
      return 1
    }
    token.update { $0 = query }
    let run = Task { try await client.fetch(query) }
    #expect(await eventually { client.store(for: query).leaseCount == 2 || answered.value != nil })
    gate.open()
    #expect(try await run.value == 1)
    await answered.wait { $0 != nil }
    #expect(answered.value == "1")
    token.update { $0 = nil }
  }

  @Test("A task of a handler of reports does not work for the run that has made the report")
  func issueHandler() async throws {
    let client = OperationClient(defaults: .testing)
    let (gate, answered) = (AsyncGate(), Monitor<String?>(nil))
    let query = Query<Int, any Error>(path: ["token"]) { context in
      _ = context.operationClient?.store(for: Query<String, any Error>(path: ["token"]) { _ in "" })
      await gate.wait()
      return 1
    }
    let handler = { @Sendable (_: OperationIssue) in
      Task {
        do {
          let value = try await client.fetch(query)
          answered.update { $0 = "\(value)" }
        } catch { answered.update { $0 = "\(error)" } }
      }
      return
    }
    await OperationIssue.withHandler(handler) {
      let run = Task { try await client.fetch(query) }
      #expect(
        await eventually { client.store(for: query).leaseCount == 2 || answered.value != nil })
      gate.open()
      _ = await run.result
      await answered.wait { $0 != nil }
      #expect(answered.value == "1")
    }
  }

  @Test("A state can cancel tasks when a run calls its request")
  func cancelInWillRun() async throws {
    let gate = AsyncGate()
    let calls = Monitor(0)
    let query = Query<Int, any Error>(path: ["remote"]) { _ in
      let call = calls.update {
        $0 += 1
        return $0
      }
      if call == 1 { await gate.wait() }
      return call
    }
    let store = OperationStore.detached(
      operation: NewestQuery(remote: query), initialState: NewestState())
    let first = Task { try await store.run() }
    await calls.wait { $0 == 1 }
    #expect(try await store.run() == 2)
    await #expect(throws: CancellationError.self) { try await first.value }
    gate.open()
  }

  @Test("The bytes of an entry are released without the lock")
  func entryBytes() async throws {
    let storage = MemoryStorage()
    let isReleased = Monitor(false)
    let pointer = UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 1)
    memset(pointer, 1, 64)
    storage.entries = [
      "key": StorageEntry(
        version: 0, date: Date(),
        data: Data(
          bytesNoCopy: pointer, count: 64,
          deallocator: .custom { pointer, _ in
            _ = storage.saveCount
            pointer.deallocate()
            isReleased.update { $0 = true }
          }))
    ]
    try await storage.remove(["key"])
    #expect(isReleased.value)
  }
}
