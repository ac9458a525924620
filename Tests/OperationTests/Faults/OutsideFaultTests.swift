import Foundation
import Glibc
import ReactiveStreams
import Synchronization
import Testing

@testable import Operation

/// Files in memory.
private final class FilesInMemory: StorageFiles {
  let contents = Monitor<[String: [UInt8]]>([:])
  var directory: String { "/files" }
  func names() throws(StorageError) -> [String] {
    contents.value.keys.sorted()
  }
  func read(_ name: String) throws(StorageError) -> [UInt8]? {
    contents.value[name]
  }
  func write(_ bytes: [UInt8], to name: String) throws(StorageError) {
    contents.update { $0[name] = bytes }
  }
  func flush(_ name: String) throws(StorageError) {}
  func rename(_ name: String, to new: String) throws(StorageError) {
    contents.update { $0[new] = $0.removeValue(forKey: name) }
  }
  func remove(_ name: String) throws(StorageError) { contents.update { $0[name] = nil } }
  func flushNames() throws(StorageError) {}
}

/// Storages, clocks and peers.
@Suite(.timeLimit(.minutes(5))) struct OutsideFaultTests {
  @Test("The duration of a run does not depend on a change of the date")
  func eventDuration() async throws {
    let clock = ManualClock()
    let client = OperationClient(defaults: .testing, clock: clock)
    let (gate, durations) = (AsyncGate(), Monitor<[Duration?]>([]))
    let subscription = client.hub.events.subscribe { event in
      if case .runEnded(_, _, let duration) = event.occurrence {
        durations.update { $0.append(duration) }
      }
    }
    let began = AsyncGate()
    let query = Query<Int, any Error>(path: ["q"]) { _ in
      began.open()
      await gate.wait()
      return 1
    }
    let run = Task { try await client.fetch(query) }
    await began.wait()
    await clock.advance(by: .seconds(5))
    await clock.advance(by: .seconds(-3_600))
    gate.open()
    _ = try await run.value
    await durations.wait { !$0.isEmpty }
    #expect(durations.value == [.seconds(5)])
    subscription.cancel()
  }

  @Test("When an inspector is cancelled, its socket is removed, also beside another cancellation")
  func cancelTwice() async throws {
    let client = OperationClient(defaults: .testing)
    var leftCount = 0
    for _ in 0..<2_000 {
      let inspector = try client.serveInspector()
      let path = inspector.path
      let left = Monitor(0)
      let go = Atomic(0)
      await onThreads(2) { _ in
        go.add(1, ordering: .sequentiallyConsistent)
        while go.load(ordering: .sequentiallyConsistent) < 2 {}
        inspector.cancel()
        if access(path, F_OK) == 0 { left.update { $0 += 1 } }
      }
      leftCount += left.value
    }
    #expect(leftCount == 0)
  }

  @Test("A client that is released during a batch saves what has changed since")
  func releasedDuringBatch() async throws {
    let (saving, gate) = (AsyncGate(), AsyncGate())
    var storage = HeldStorage(base: MemoryStorage())
    storage.gate.open()
    storage.beforeSave = {
      saving.open()
      await gate.wait()
    }
    let clock = ManualClock(now: savedStart)
    var client: OperationClient? = OperationClient(
      defaults: .testing, clock: clock, storage: storage)
    let query = Query<Int, any Error>(path: ["q"]) { _ in 1 }.persisted().manual()
    var store = client?.store(for: query)
    #expect(await eventually { store?.isRestoring == false })
    store?.currentValue = 1
    await clock.advance(by: .seconds(1))
    await saving.wait()
    store?.currentValue = 2
    store = nil
    client = nil
    gate.open()
    #expect(await eventually { storage.base.entries["values/q"] != nil })
    var rounds = 0
    while storage.base.entries["values/q"]?.text != "2", rounds < 20_000 {
      await Task.yield()
      rounds += 1
    }
    #expect(storage.base.entries["values/q"]?.text == "2")
  }

  @Test("The commands that a peer of an inspector sends before it closes are performed")
  func commandsBeforeClose() async throws {
    let client = OperationClient(defaults: .testing)
    let stores = (0..<3).map { id in
      client.store(for: Query<Int, any Error>(path: ["q", id]) { _ in 1 }, initialValue: nil)
    }
    for store in stores { store.currentValue = 5 }
    let inspector = try client.serveInspector()
    let peer = try InspectingPeer(at: inspector.path)
    let ids = try await peer.line("snapshot").stores?.map(\.id) ?? []
    peer.send(ids.map { "{\"id\":1,\"command\":\"reset\",\"store\":\($0)}\n" }.joined())
    peer.hangUp()
    var count = 0
    while stores.contains(where: { $0.currentValue != nil }), count < 100_000 {
      await Task.yield()
      count += 1
    }
    #expect(stores.map(\.currentValue) == [nil, nil, nil])
    withExtendedLifetime(inspector) {}
  }
}
