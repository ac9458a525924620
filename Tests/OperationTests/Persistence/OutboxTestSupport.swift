import FoundationEssentials
import Operation

let outboxStart = Date(timeIntervalSinceReferenceDate: 800_000_000)

/// A server that records the calls that arrive.
final class OutboxServer: Sendable {
  let arrivals = EventLog<(title: String, call: String, attempt: Int)>()
  /// A gate at which calls wait before they return.
  let gate = AsyncGate()
  let waits: Bool

  init(waits: Bool = false) { self.waits = waits }

  var titles: [String] { arrivals.values.map(\.title) }
}

/// Creates a post on a server.
struct CreatePost: MutationRequest {
  let server: OutboxServer
  var failures = 0

  var path: OperationPath { ["create-post"] }

  func mutate(
    with title: String, in context: OperationContext,
    with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int {
    let count = server.arrivals.append(
      (title, context.operationCallID ?? "", context.operationCallAttempt))
    if count <= failures { throw Refused(attempt: count) }
    if server.waits || title == "held" { await server.gate.wait() }
    return count
  }
}

/// A mutation whose failure cannot be a cancellation.
struct TypedPost: MutationRequest {
  let calls: EventLog<Bool>

  var path: OperationPath { ["typed-post"] }

  func mutate(
    with title: String, in context: OperationContext,
    with continuation: OperationContinuation<Int, Refused>
  ) async throws(Refused) -> Int {
    calls.append(Task.isCancelled)
    if Task.isCancelled { throw Refused() }
    return 1
  }
}

/// A storage that does not remove all keys.
struct UnremovableStorage: OperationStorage {
  let base = MemoryStorage()
  let isRepaired = Monitor(false)
  var keeps: @Sendable (String) -> Bool = { _ in true }

  func load(_ key: String) async throws -> StorageEntry? { try await base.load(key) }
  func save(_ entries: [String: StorageEntry]) async throws { try await base.save(entries) }
  func remove(_ keys: [String]) async throws {
    if !isRepaired.value, keys.contains(where: keeps) { throw Refused() }
    try await base.remove(keys)
  }
  func keys(withPrefix prefix: String) async throws -> [String] {
    try await base.keys(withPrefix: prefix)
  }
}

/// A storage whose loads return when a gate is opened.
struct SlowStorage: OperationStorage {
  let base: MemoryStorage
  let loads = EventLog<String>()
  let gate = AsyncGate()

  func load(_ key: String) async throws -> StorageEntry? {
    loads.append(key)
    await gate.wait()
    return try await base.load(key)
  }

  func save(_ entries: [String: StorageEntry]) async throws { try await base.save(entries) }
  func remove(_ keys: [String]) async throws { try await base.remove(keys) }
  func keys(withPrefix prefix: String) async throws -> [String] {
    try await base.keys(withPrefix: prefix)
  }
}

func outboxProgram(
  _ storage: any OperationStorage, network: ManualNetworkObserver = ManualNetworkObserver(),
  clock: ManualClock = ManualClock(now: outboxStart)
) -> OperationClient {
  var defaults = OperationDefaults.testing
  defaults.networkObserver = network
  return OperationClient(defaults: defaults, clock: clock, storage: storage)
}

/// Makes calls in a program that ends while the calls are in flight.
func interruptCalls(
  _ titles: [String], version: Int = 0, in storage: MemoryStorage
) async throws {
  let server = OutboxServer(waits: true)
  let client = outboxProgram(storage)
  let store = client.store(for: CreatePost(server: server).persisted(version: version))
  var tasks: [Task<Int, any Error>] = []
  for (index, title) in titles.enumerated() {
    tasks.append(Task { try await store.mutate(with: title) })
    await server.arrivals.wait(for: index + 1)
  }
  let entries = storage.entries
  for task in tasks { task.cancel() }
  for task in tasks { _ = await task.result }
  server.gate.open()
  for await calls in client.outbox.values where calls.isEmpty { break }
  try await client.flush()
  storage.entries = entries
}
