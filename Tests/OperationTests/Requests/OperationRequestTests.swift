import Operation
import Testing

@Suite("OperationRequest") struct OperationRequestTests {
  private struct Located: QueryRequest {
    let path: OperationPath = ["located"]

    func fetch(
      in context: OperationContext, with continuation: OperationContinuation<Bool, Never>
    ) async throws(Never) -> Bool {
      await isOnMainActor()
    }
  }

  private struct LocatedPlain: OperationRequest {
    func run(
      isolation: isolated (any Actor)?, in context: OperationContext,
      with continuation: OperationContinuation<Bool, Never>
    ) async throws(Never) -> Bool {
      isolation === MainActor.shared
    }
  }

  @Test("A request runs on the caller's actor without a store, and on no actor in a store")
  @MainActor
  func isolation() async {
    let modified = Located().retry(limit: 1).delay(for: .zero).map { $0 }
    #expect(await Located().run())
    #expect(await modified.run())
    let (context, ignored) = (OperationContext(), OperationContinuation<Bool, Never> { _ in })
    #expect(await modified.fetch(in: context, with: ignored))
    #expect(await Located().retry(limit: 1).fetch(in: context, with: ignored))
    #expect(await LocatedPlain().retry(limit: 1).run())
    #expect(await !OperationStore.detached(query: Located()).run())
    #expect(await !Task.detached { await Located().run() }.value)
  }

  @Test("The context of a run keeps its values, and contains no settings of another request")
  func context() async throws {
    let script = Script()
    _ = try await PlainRequest(script: script).retry(limit: 4).run(in: .number(6))
    let first = try #require(script.contexts.values.first)
    #expect(first.fixtureNumber == 6 && first.operationMaxRetries == 4)
    _ = try await PlainRequest(script: script).run(in: first)
    let second = try #require(script.contexts.values.last)
    #expect(second.fixtureNumber == 6 && second.operationMaxRetries == 0)
    #expect(second.operationRun?.id != first.operationRun?.id)
    #expect(second.isLastRetryAttempt)
  }

  @Test("Modifiers compose in any order on any request")
  func composition() async throws {
    let request = PlainRequest(script: Script(failures: 1))
      .deduplicated().neverStale().stale(after: .seconds(1)).clock(ManualClock())
      .handleEvents { _ in }.logDuration("") { _ in }.delay(for: .zero).map { "\($0)" }
      .retry(limit: 1).backoff(.noBackoff).timeout(after: .seconds(1)).deduplicated { _, _ in true }
    #expect(try await request.run() == "2")
  }

  @Test("The default path is the hashable request, or its identifier")
  func paths() {
    struct ByHash: QueryRequest, Hashable {
      let number: Int
      func fetch(
        in context: OperationContext, with continuation: OperationContinuation<Int, Never>
      ) async throws(Never) -> Int { number }
    }
    struct ByIdentifier: QueryRequest, Identifiable {
      let id: String
      func fetch(
        in context: OperationContext, with continuation: OperationContinuation<Int, Never>
      ) async throws(Never) -> Int { 1 }
    }
    struct ByBoth: QueryRequest, Hashable, Identifiable {
      let id: String
      func fetch(
        in context: OperationContext, with continuation: OperationContinuation<Int, Never>
      ) async throws(Never) -> Int { 1 }
    }
    #expect(ByHash(number: 1).path == OperationPath(ByHash(number: 1)))
    #expect(ByHash(number: 1).path != ByHash(number: 2).path)
    #expect(ByIdentifier(id: "a").path == ["a"])
    #expect(ByBoth(id: "a").path == OperationPath(ByBoth(id: "a")))
    #expect(ByHash(number: 1).retry(limit: 1).path == ByHash(number: 1).path)
    let mapped = ByHash(number: 1).retry(limit: 1).map { $0 }.path
    #expect(ByHash(number: 1).path.isPrefix(of: mapped) && mapped.count == 2)
  }
}

/// Returns a Boolean value that indicates whether the caller's actor is the main actor.
nonisolated(nonsending) private func isOnMainActor() async -> Bool {
  #isolation === MainActor.shared
}
