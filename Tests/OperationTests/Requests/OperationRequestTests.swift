import Dispatch
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

  private struct Placed: QueryRequest, Hashable {
    func fetch(
      in context: OperationContext, with continuation: OperationContinuation<Bool, any Error>
    ) async throws -> Bool { QueueActor.isRunning }
  }

  @Test("The task that a modifier makes changes to the caller's actor before it calls a query")
  @QueueActor
  func isolationOfTasks() async throws {
    #expect(QueueActor.isRunning)
    #expect(try await Placed().run())
    #expect(try await Placed().timeout(after: .seconds(60)).run())
    #expect(try await Placed().deduplicated().run())
    #expect(try await Placed().timeout(after: .seconds(60)).retry(limit: 1).deduplicated().run())
    #expect(try await !OperationStore.detached(query: Placed()).run())
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

/// An actor that runs on a queue, which tells whether the caller runs there. `#isolation` only tells
/// where the caller should run.
@globalActor
private actor QueueActor {
  private final class Executor: SerialExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      QueueActor.queue.async { [self] in job.runSynchronously(on: asUnownedSerialExecutor()) }
    }
  }

  static let shared = QueueActor()
  private static let executor = Executor()
  private static let key = DispatchSpecificKey<Bool>()
  private static let queue = {
    let queue = DispatchQueue(label: "queue-actor")
    queue.setSpecific(key: key, value: true)
    return queue
  }()

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    Self.executor.asUnownedSerialExecutor()
  }

  /// Whether the caller runs on the queue.
  nonisolated static var isRunning: Bool { DispatchQueue.getSpecific(key: key) == true }
}
