import Foundation
import Operation
import Testing

/// Calls and attempts beside each other.
@Suite(.timeLimit(.minutes(5))) struct AttemptFaultTests {
  @Test(
    "The yield of a call that is cancelled is not displayed, while an earlier call is in flight")
  func overlappingYield() async throws {
    let gates = [AsyncGate(), AsyncGate(), AsyncGate()]
    let started = Monitor(0)
    let store = OperationClient(defaults: .quiet()).store(
      for: Mutation<Int, String>(path: ["suspect-f"]) { number, _, continuation in
        if number == 2 { continuation.yield("yield of 2") }
        started.update { $0 += 1 }
        await gates[number].wait()
        return "result of \(number)"
      })
    var calls: [Task<String, any Error>] = []
    for number in 0..<3 {
      calls.append(Task { try await store.mutate(with: number) })
      await started.wait { $0 == number + 1 }
    }
    #expect(store.currentValue == "yield of 2")
    gates[0].open()
    _ = try await calls[0].value
    #expect(store.currentValue == "yield of 2")
    calls[2].cancel()
    _ = await calls[2].result
    #expect(store.currentValue == nil)
    #expect(store.history.count == 2)
    gates[1].open()
    gates[2].open()
    _ = try await calls[1].value
    #expect(store.currentValue == "result of 1")
  }

  @Test("The yield of a call that is cancelled is not displayed after an earlier call has failed")
  func overlappingYieldThenFailure() async throws {
    let gates = [AsyncGate(), AsyncGate(), AsyncGate()]
    let started = Monitor(0)
    let store = OperationClient(defaults: .quiet()).store(
      for: Mutation<Int, String>(path: ["suspect-f2"]) { number, _, continuation in
        if number == 2 { continuation.yield("yield of 2") }
        started.update { $0 += 1 }
        await gates[number].wait()
        if number == 1 { throw Failed() }
        return "result of \(number)"
      })
    var calls: [Task<String, any Error>] = []
    for number in 0..<3 {
      calls.append(Task { try await store.mutate(with: number) })
      await started.wait { $0 == number + 1 }
    }
    gates[0].open()
    _ = try await calls[0].value
    calls[2].cancel()
    _ = await calls[2].result
    gates[1].open()
    gates[2].open()
    _ = await calls[1].result
    #expect(store.error is Failed)
    #expect(store.currentValue != "yield of 2")
  }

  /// A modifier that runs a request twice at once, and returns the result that comes first.
  struct Hedged<Base: OperationRequest>: OperationModifier where Base.Failure == any Error {
    func run(
      isolation: isolated (any Actor)?, in context: OperationContext, using base: Base,
      with continuation: OperationContinuation<Base.Value, any Error>
    ) async throws -> Base.Value {
      try await withThrowingTaskGroup(of: Base.Value.self) { group in
        for _ in 0..<2 {
          group.addTask { try await base.run(isolation: nil, in: context, with: continuation) }
        }
        guard let first = try await group.next() else { throw Failed() }
        group.cancelAll()
        return first
      }
    }
  }

  @Test("A modifier may run a request for all pages twice at once")
  func hedged() async throws {
    for _ in 0..<20 { try await hedge() }
  }

  private func hedge() async throws {
    let server = PageServer(0...9)
    let store = OperationClient(defaults: .quiet())
      .store(for: Numbers(server: server).modifier(Hedged()))
    for _ in 0..<3 { try await store.fetchNextPage() }
    #expect(store.currentValue.ids == [0, 1, 2])
    server.close()
    server.version = 1
    let run = Task { try await store.fetchAllPages() }
    await server.pending(2)
    // Both attempts wait for page 0. The first one is answered.
    server.answer(0)
    for _ in 0..<2_000 { await Task.yield() }
    server.open()
    _ = try await run.value
    #expect(store.currentValue.ids == [0, 1, 2])
  }
  /// A modifier that refuses the first results.
  struct Checked<Base: OperationRequest>: OperationModifier where Base.Failure == any Error {
    let isAccepted: @Sendable (Base.Value) -> Bool
    func run(
      isolation: isolated (any Actor)?, in context: OperationContext, using base: Base,
      with continuation: OperationContinuation<Base.Value, any Error>
    ) async throws -> Base.Value {
      let value = try await base.run(isolation: isolation, in: context, with: continuation)
      if !isAccepted(value) { throw Failed() }
      return value
    }
  }

  @Test("A retry after a result that was refused fetches all pages again")
  func refusedResult() async throws {
    let server = PageServer(0...9)
    let refusals = Monitor(0)
    let request = Numbers(server: server).modifier(
      Checked { result in
        guard result.kind == .allPages else { return true }
        return refusals.update { count in
          count += 1
          return count > 1
        }
      }
    ).retry(limit: 1).backoff(.noBackoff)
    let store = OperationClient(defaults: .quiet()).store(for: request)
    for _ in 0..<3 { try await store.fetchNextPage() }
    #expect(server.requests == [0, 1, 2])
    server.version = 1
    try await store.fetchAllPages()
    #expect(refusals.value == 2)
    #expect(server.requests == [0, 1, 2, 0, 1, 2, 0, 1, 2])
  }
}
