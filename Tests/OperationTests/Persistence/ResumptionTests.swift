import Dispatch
import FoundationEssentials
import Operation
import Testing

/// A mutation that waits at a gate, and then fails.
private struct Change: MutationRequest {
  struct Refusal: Error {}

  let calls: EventLog<String>
  let gate: AsyncGate

  var path: OperationPath { ["change"] }

  func mutate(
    with text: String, in context: OperationContext,
    with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int {
    calls.append(context.operationCallID ?? "")
    await gate.wait()
    throw Refusal()
  }
}

@Suite("Calls that are resumed more than once") struct ResumptionTests {
  private typealias Outcome = @Sendable () async throws -> Int

  private let calls = EventLog<String>()
  private let gate = AsyncGate()
  private let outcomes = EventLog<Outcome>()

  /// Returns a client with a call that an earlier program did not finish, whose handler has
  /// returned.
  private func client() async throws -> OperationClient {
    let call =
      #"{"id":"ID","mutation":"change","arguments":"\#(Data(#""a""#.utf8).base64EncodedString())","attempts":1}"#
    let entry = StorageEntry(version: 0, date: Date(), data: Data(call.utf8))
    let storage = MemoryStorage(["calls/0000000000000001-ID": entry])
    let client = OperationClient(defaults: .testing, storage: storage)
    try await client.resumeMutations { [calls, gate, outcomes] outbox in
      outbox.register(Change(calls: calls, gate: gate)) { outcomes.append($2) }
    }
    for await present in client.outbox.values where present.first?.status == .waiting { break }
    return client
  }

  @Test("A call that is made after its handler has returned runs, and is not retried meanwhile")
  func late() async throws {
    defer { outcomes.clear() }
    let client = try await client()
    let outcome = outcomes.values[0]
    let run = Task { try await outcome() }
    await calls.wait(for: 1)
    #expect(client.outbox.calls.map(\.status) == [.running])
    #expect(!client.outbox.retry("ID"))
    gate.open()
    _ = await run.result
    #expect(calls.values == ["ID"])
  }

  @Test("A call is no longer made for an earlier resumption") func earlier() async throws {
    defer { outcomes.clear() }
    let client = try await client()
    #expect(client.outbox.retry("ID"))
    for await present in client.outbox.values where present.first?.status == .waiting { break }
    let current = outcomes.values[1]
    let run = Task { try await current() }
    await calls.wait(for: 1)
    await #expect(throws: CancellationError.self) { _ = try await outcomes.values[0]() }
    #expect(client.outbox.calls.map(\.status) == [.running])
    gate.open()
    _ = await run.result
    #expect(client.outbox.calls.map(\.status) == [.failed("Refusal()")])
    #expect(calls.values == ["ID"])
  }

  @Test("Two resumptions at once make the calls of a scope in their order")
  func atOnce() async throws {
    let storage = MemoryStorage()
    try await interruptCalls(["a", "b"], in: storage)
    let (server, client) = (OutboxServer(), outboxProgram(storage))
    let (decodings, mayDecode) = (EventLog<Data>(), DispatchSemaphore(value: 0))
    let coding = StorageCoding<String> {
      Data($0.utf8)
    } decode: { data in
      if decodings.append(data) == 1 { mayDecode.wait() }
      return try JSONDecoder().decode(String.self, from: data)
    }
    let create = CreatePost(server: server).serialized(in: "posts").persisted(coding: coding)
    let first = Task(executorPreference: RestingExecutor()) {
      try await client.resumeMutations { $0.register(create) }
    }
    await decodings.wait(for: 1)
    let executor = RestingExecutor()
    let second = Task(executorPreference: executor) {
      try await client.resumeMutations { $0.register(create) }
    }
    // If the second resumption did not wait, it would have made the second call then.
    await executor.rest()
    mayDecode.signal()
    _ = try await (first.value, second.value)
    await server.arrivals.wait(for: 2)
    #expect(server.titles == ["a", "b"])
  }

  @Test("Retries count as attempts of a saved call, also for the next program")
  func retries() async throws {
    let storage = MemoryStorage()
    let server = OutboxServer(waits: true)
    let create = CreatePost(server: server, failures: 2)
    let client = outboxProgram(storage)
    let store = client.store(for: create.retry(limit: 2).backoff(.noBackoff).persisted())
    let call = Task { try await store.mutate(with: "a") }
    await server.arrivals.wait(for: 3)
    #expect(client.outbox.calls.map(\.attempts) == [3])
    try await client.flush()
    // The program ends now.
    let next = outboxProgram(MemoryStorage(storage.entries))
    try await next.resumeMutations { $0.register(create) }
    await server.arrivals.wait(for: 4)
    #expect(server.arrivals.values.map(\.attempt) == [0, 1, 2, 3])
    #expect(next.outbox.calls.map(\.attempts) == [4])
    server.gate.open()
    _ = try await call.value
    for await calls in next.outbox.values where calls.isEmpty { break }
  }
}
