import FoundationEssentials
import Operation

/// A post, as a server returns it.
struct SavedPost: Codable, Sendable, Hashable {
  var title: String
  var likes = 0
}

let savedStart = Date(timeIntervalSinceReferenceDate: 800_000_000)

/// A program that can be started several times with one storage.
struct SavedProgram {
  let clock: ManualClock
  let storage: MemoryStorage
  let client: OperationClient
  let issues = EventLog<OperationIssue>()

  init(_ storage: MemoryStorage = MemoryStorage(), at date: Date = savedStart) {
    clock = ManualClock(now: date)
    self.storage = storage
    client = OperationClient(
      defaults: .testing, clock: clock, retention: .unusedFor(.seconds(300)), storage: storage)
  }

  /// Starts the program again after it was ended by a signal.
  func restarted(after duration: Duration = .seconds(60)) -> SavedProgram {
    SavedProgram(
      MemoryStorage(storage.entries),
      at: clock.now() + Double(duration.components.seconds))
  }

  /// Calls `body`, and collects its reports.
  func noting<Output>(_ body: () async throws -> Output) async rethrows -> Output {
    try await OperationIssue.withHandler({ [issues] in issues.append($0) }, operation: body)
  }

  /// A program that has fetched and saved the value of a query.
  static func saving(_ query: Query<SavedPost, any Error>) async throws -> SavedProgram {
    let program = SavedProgram()
    try await program.client.fetch(query.persisted())
    try await program.client.flush()
    return program
  }

  /// Starts the program again with a storage that takes five seconds for each call.
  func slowlyRestarted() -> (OperationClient, ManualClock, MemoryStorage) {
    let clock = ManualClock(now: savedStart)
    let storage = MemoryStorage(storage.entries, clock: clock)
    storage.delay = .seconds(5)
    return (OperationClient(defaults: .testing, clock: clock, storage: storage), clock, storage)
  }

  var kinds: [OperationIssue.Kind] { issues.values.map(\.kind) }
}

struct CreateNothing: SimpleMutationRequest, Hashable {
  func mutate(with number: Int, in context: OperationContext) async throws -> Int { number }
}

/// Returns a query whose value has the number of the fetch.
func savedPosts(
  _ fetches: EventLog<Int>, path: OperationPath = ["posts"]
) -> Query<SavedPost, any Error> {
  Query(path: path) { _ in SavedPost(title: "post \(fetches.append(0))") }
}

extension StorageEntry {
  /// The data as text.
  var text: String { String(decoding: data, as: UTF8.self) }
}

extension StorageCoding where Value: Decodable {
  func value(of data: Data) throws -> Value {
    try JSONDecoder().decode(Value.self, from: data)
  }
}
