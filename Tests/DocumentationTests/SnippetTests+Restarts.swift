import Foundation
import Operation
import Testing

@testable import Snippets

private let note = Note(id: "1", text: "Buy bread")

private func makeNotesClient(
  _ storage: any OperationStorage, _ network: ManualNetworkObserver = ManualNetworkObserver(),
  notes: NotesService = NotesService(load: { [note] })
) -> OperationClient {
  var context = OperationContext()
  context.notes = notes
  var defaults = OperationDefaults.testing
  defaults.networkObserver = network
  // Saved values are read before an automatic run could replace them.
  defaults.runsAutomatically = false
  return OperationClient(defaults: defaults, context: context, storage: storage)
}

/// Adds a note in a program that has no connection. Returns what its storage has, the identifier of the call, and
/// its task.
private func addNoteOffline() async throws -> (MemoryStorage, String, Task<Void, any Error>) {
  let storage = MemoryStorage()
  let client = makeNotesClient(storage, ManualNetworkObserver(.disconnected))
  let call = client.store(for: addNote()).mutateTask(with: note)
  let task = Task { try await call.runIfNeeded() }
  for await calls in client.outbox.values where calls.count == 1 { break }
  try await client.flush()
  return (MemoryStorage(storage.entries), client.outbox.calls[0].id, task)
}

extension SnippetTests {
  @Test("Notes are restored after a restart, and a view is empty until then") func restart()
    async throws
  {
    let storage = MemoryStorage()
    let first = makeNotesClient(storage)
    let store = first.store(for: savedNotes())
    try await store.fetch()
    #expect(describeNotes(in: store) == "1 notes")
    #expect(try await notesAfterRestart(of: first, with: storage) == [note])
    let gate = ManualClock()
    let slow = MemoryStorage(clock: gate)
    slow.delay = .seconds(1)
    let next = makeNotesClient(slow).store(for: savedNotes().manual())
    #expect(describeNotes(in: next) == "")
    await gate.sleepers(atLeast: 1)
    await gate.advance(by: .seconds(1))
    for await state in next.states where !state.isRestoring { break }
    #expect(describeNotes(in: next) == "no notes yet")
  }

  @Test("Notes of version 0 are migrated") func migration() async throws {
    let storage = MemoryStorage()
    let first = makeNotesClient(storage)
    try await first.fetch(savedNotes())
    try await first.flush()
    for key in storage.entries.keys { storage.entries[key]?.data = Data(#"["a", "b"]"#.utf8) }
    let store = makeNotesClient(storage).store(for: migratedNotes())
    for await state in store.states where !state.isRestoring { break }
    #expect(store.currentValue?.map(\.text) == ["a", "b"])
  }

  @Test("A value with a name, and one with defaults, is saved") func names() async throws {
    let storage = MemoryStorage()
    let client = makeNotesClient(storage)
    saveNotes(of: client)
    let day = DateInterval(start: Date(timeIntervalSinceReferenceDate: 0), duration: 86_400)
    try await client.fetch(notes(of: day))
    try await client.fetch(Query<[Note], any Error>(path: ["notes"]) { _ in [note] })
    try await client.flush()
    #expect(storage.entries.keys.sorted() == ["values/=notes of 0%2e0", "values/notes"])
  }

  @Test("A note that was added offline is displayed after a restart, and sent once")
  func resume() async throws {
    let (storage, id, task) = try await addNoteOffline()

    let (sent, continuation) = AsyncStream.makeStream(of: String?.self)
    let network = ManualNetworkObserver(.disconnected)
    let service = NotesService(load: { [] }, add: { _, key in continuation.yield(key) })
    let next = makeNotesClient(storage, network, notes: service)
    let store = next.store(for: savedNotes())
    try await store.fetch()
    try await resumeCalls(of: next)
    #expect(store.currentValue == [note] && store.confirmedValue == [])
    network.set(.connected)
    for await calls in next.outbox.values where calls.isEmpty { break }
    continuation.finish()
    var keys: [String?] = []
    for await key in sent { keys.append(key) }
    #expect(keys == [id])
    task.cancel()
  }

  @Test("A note that the server had taken before the program ended is displayed once")
  func resumeTaken() async throws {
    let (storage, _, task) = try await addNoteOffline()

    let service = NotesService(load: { [note] }, add: { _, _ in })
    let next = makeNotesClient(storage, notes: service)
    let store = next.store(for: savedNotes())
    try await store.fetch()
    try await resumeCalls(of: next)
    for await calls in next.outbox.values where calls.isEmpty { break }
    #expect(store.currentValue == [note])
    task.cancel()
  }

  @Test("A call that fails three times is discarded") func failures() async throws {
    struct Refused: Error {}
    let (storage, _, task) = try await addNoteOffline()
    let refusing = NotesService(add: { _, _ in throw Refused() })
    let next = makeNotesClient(storage, notes: refusing)
    try await resumeCalls(of: next)
    for attempt in 2...3 {
      for await calls in next.outbox.values where calls.first?.status != .running { break }
      #expect(next.outbox.calls.map(\.attempts) == [attempt])
      retryFailures(in: next.outbox, giveUpAfter: 3)
    }
    #expect(next.outbox.calls.isEmpty)
    task.cancel()
  }

  @Test("A custom storage and a directory keep saved values") func storages() async throws {
    let table = TableStorage()
    let first = makeNotesClient(table)
    try await first.fetch(savedNotes())
    try await first.flush()
    #expect(try await table.keys(withPrefix: "values/").count == 1)
    first.clearStores()
    try await first.flush()
    #expect(try await table.keys(withPrefix: "").isEmpty)

    let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: directory) }
    let saving = try makeClient(savingIn: directory.path())
    saving.store(for: savedNotes()).setResult(to: .success([note]))
    await end(saving)
    let files = try FileManager.default.contentsOfDirectory(atPath: directory.path())
    #expect(files.count { $0.hasSuffix(".entry") } == 1)
    #expect(throws: StorageError.inUse(directory: directory.path())) {
      _ = try makeClient(savingIn: directory.path())
    }
    withExtendedLifetime(saving) {}
  }
}
