// The code of the guide SurvivingRestarts: the build compiles it, and a test compares it with the guide.

import Foundation
import Operation
import Synchronization

struct NotesService: Sendable {
  var load: @Sendable () async throws -> [Note] = { [] }
  var add: @Sendable (_ note: Note, _ key: String?) async throws -> Void = { _, _ in }
}

extension OperationContext {
  var notes: NotesService {
    get { self[NotesKey.self] }
    set { self[NotesKey.self] = newValue }
  }

  private enum NotesKey: Key {
    static var defaultValue: NotesService { NotesService() }
  }
}

// snippet: client
func makeClient(savingIn directory: String) throws -> OperationClient {
  OperationClient(storage: try FileStorage(directory: directory))
}
// end

// snippet: query
struct Note: Codable, Sendable, Equatable {
  let id: String
  var text: String
}

struct NotesQuery: QueryRequest, Hashable {
  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<[Note], any Error>
  ) async throws -> [Note] {
    try await context.notes.load()
  }
}

func savedNotes() -> some QueryRequest<[Note], NotesQuery.State> {
  NotesQuery().stale(after: .seconds(60)).persisted(maxAge: .seconds(30 * 24 * 60 * 60))
}
// end

// snippet: restoring
func describeNotes(in store: OperationStore<NotesQuery.State>) -> String {
  if let notes = store.currentValue { return "\(notes.count) notes" }
  return store.isRestoring ? "" : "no notes yet"
}
// end

// snippet: version
func migratedNotes() -> some QueryRequest<[Note], NotesQuery.State> {
  // Version 0 was a list of texts.
  let coding = StorageCoding<[Note]>.json.migrating { data, version in
    try JSONDecoder().decode([String].self, from: data).map { Note(id: $0, text: $0) }
  }
  return NotesQuery().persisted(version: 1, coding: coding)
}
// end

// snippet: name
func notes(of day: DateInterval) -> some QueryRequest<[Note], QueryState<[Note], any Error>> {
  Query(path: ["notes", day]) { context in try await context.notes.load() }
    .persisted(as: "notes of \(day.start.timeIntervalSinceReferenceDate)")
}
// end

// snippet: defaults
func saveNotes(of client: OperationClient) {
  client.setDefaults(matching: ["notes"]) {
    $0.persistence = OperationPersistence(maxAge: .seconds(30 * 24 * 60 * 60), version: 1)
  }
}
// end

// snippet: end
func end(_ client: OperationClient) async {
  let shutdown = await client.shutdown(within: .seconds(5))
  if let failure = shutdown.saveFailure { print("not saved:", failure) }
}
// end

// snippet: mutation
struct AddNote: MutationRequest, Hashable {
  struct MissingKey: Error {}

  func mutate(
    with note: Note, in context: OperationContext,
    with continuation: OperationContinuation<Void, any Error>
  ) async throws {
    guard let key = context.operationCallID else { throw MissingKey() }
    try await context.notes.add(note, key)
  }
}

func addNote() -> some MutationRequest<Note, Void>
  & StatefulOperationRequest<Void, AddNote.State>
{
  AddNote().networkMode(.online).serialized(in: "notes")
    .persisted(maxAge: .seconds(7 * 24 * 60 * 60))
}
// end

// snippet: resume
func resumeCalls(of client: OperationClient) async throws {
  try await client.resumeMutations { outbox in
    outbox.register(addNote()) { note, client, outcome in
      try await client.store(for: savedNotes()).optimistically { notes in
        // The server may have taken the call before the program ended.
        if notes?.contains(where: { $0.id == note.id }) == false { notes?.append(note) }
      } while: {
        try await outcome()
      }
    }
  }
}
// end

// snippet: outbox
func retryFailures(in outbox: OperationOutbox, giveUpAfter limit: Int) {
  for call in outbox.calls {
    guard case .failed(let reason) = call.status else { continue }
    print(call.mutation, "has failed:", reason)
    if call.attempts < limit { outbox.retry(call.id) } else { outbox.discard(call.id) }
  }
}

func printWaitingCalls(of client: OperationClient) async {
  for await calls in client.outbox.values { print(calls.count, "changes are not sent yet") }
}
// end

// snippet: storage
final class TableStorage: OperationStorage {
  private let table = Mutex<[String: StorageEntry]>([:])

  func load(_ key: String) async throws -> StorageEntry? { table.withLock { $0[key] } }

  func save(_ entries: [String: StorageEntry]) async throws {
    table.withLock { $0.merge(entries) { _, new in new } }
  }

  func remove(_ keys: [String]) async throws {
    table.withLock { for key in keys { $0[key] = nil } }
  }

  func keys(withPrefix prefix: String) async throws -> [String] {
    table.withLock { $0.keys.filter { $0.hasPrefix(prefix) } }
  }
}
// end

// snippet: test
func notesAfterRestart(of client: OperationClient, with storage: MemoryStorage) async throws
  -> [Note]?
{
  try await client.flush()
  let next = OperationClient(defaults: .testing, storage: MemoryStorage(storage.entries))
  let store = next.store(for: savedNotes())
  for await state in store.states where !state.isRestoring { break }
  return store.currentValue
}
// end
