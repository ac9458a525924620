import Foundation
import Operation
import Testing

/// The place of a call among those of the outbox, from the beginning of the call to its end.
@Suite("The place of a saved call", .timeLimit(.minutes(5))) struct OutboxPlaceTests {
  private let storage = MemoryStorage()
  private let network = ManualNetworkObserver(.disconnected)

  /// Returns the title of each call in the outbox.
  private func titles(in client: OperationClient) throws -> [String] {
    try client.outbox.calls.map { try JSONDecoder().decode(String.self, from: $0.arguments) }
  }

  @Test("A call that a subscriber makes at the start of another one follows it after a restart")
  func order() async throws {
    let client = outboxProgram(storage, network: network)
    let server = OutboxServer()
    let store = client.store(
      for: CreatePost(server: server).networkMode(.online).serialized(in: "posts").persisted())
    let calls = EventLog<Task<Int, any Error>>()
    let subscription = store.subscribe { event in
      if case .runStarted = event, calls.count == 0 {
        calls.append(Task.immediate { try await store.mutate(with: "second") })
      }
    }
    let first = Task { try await store.mutate(with: "first") }
    await calls.wait(for: 1)
    await Settled.when { store.history.count == 2 }
    try await client.flush()
    #expect(store.history.map(\.arguments) == ["first", "second"])
    #expect(try titles(in: client) == ["first", "second"])
    // The program is killed, and starts again.
    let next = outboxProgram(MemoryStorage(storage.entries))
    let later = OutboxServer()
    try await next.resumeMutations {
      $0.register(CreatePost(server: later).serialized(in: "posts"))
    }
    await later.arrivals.wait(for: 2)
    #expect(later.titles == ["first", "second"])
    network.set(.connected)
    _ = try await (first.value, calls.values[0].value)
    subscription.cancel()
  }

  @Test("A flush at the start of a call waits until the call is in the storage")
  func flushed() async throws {
    let client = outboxProgram(storage, network: network)
    let server = OutboxServer()
    let store = client.store(for: CreatePost(server: server).networkMode(.online).persisted())
    let flushes = EventLog<Task<Int, any Error>>()
    let subscription = store.subscribe { [storage] event in
      guard case .runStarted = event else { return }
      flushes.append(
        Task.immediate {
          try await client.flush()
          return storage.entries.count
        })
    }
    let call = Task { try await store.mutate(with: "post") }
    await flushes.wait(for: 1)
    #expect(try await flushes.values[0].value == 1)
    network.set(.connected)
    _ = try await call.value
    subscription.cancel()
  }

  @Test("A flush does not wait for a call that was refused", arguments: [true, false])
  func refused(isClosed: Bool) async throws {
    let client = outboxProgram(storage)
    let mutation = CreatePost(server: OutboxServer()).enableAutomaticRunning().persisted()
    let store = client.store(for: mutation)
    if isClosed {
      _ = await client.shutdown(within: .zero)
      await #expect(throws: CancellationError.self) { try await store.mutate(with: "late") }
    }
    // An automatic run has no arguments.
    store.subscribe { _ in }.cancel()
    try await client.flush()
    #expect(storage.entries.isEmpty)
  }

  @Test("The bytes of a call can use the outbox when they are released") func bytes() async throws {
    let client = outboxProgram(storage)
    let counts = EventLog<Int>()
    let coding = StorageCoding<String> { [outbox = client.outbox] title in
      // A few bytes would be copied.
      let bytes = UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 1)
      bytes.initializeMemory(as: UInt8.self, repeating: UInt8(title.utf8.count), count: 64)
      let deallocator = Data.Deallocator.custom { bytes, _ in
        counts.append(outbox.calls.count)
        bytes.deallocate()
      }
      return Data(bytesNoCopy: bytes, count: 64, deallocator: deallocator)
    } decode: { bytes in
      String(repeating: "a", count: Int(bytes.first ?? 0))
    }
    let store = client.store(for: CreatePost(server: OutboxServer()).persisted(coding: coding))
    try await store.mutate(with: "post")
    await counts.wait(for: 1)
    #expect(counts.values == [0])
  }
}
