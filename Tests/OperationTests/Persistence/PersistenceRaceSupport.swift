import FoundationEssentials
import Operation

/// A storage whose loads read at once, and return when a gate is opened. Other calls can wait.
struct HeldStorage: OperationStorage {
  let base: MemoryStorage
  let gate = AsyncGate()
  let loads = EventLog<String>()
  var beforeSave: @Sendable () async -> Void = {}
  var beforeSettingAside: @Sendable () async -> Void = {}
  var afterSave: @Sendable () async -> Void = {}

  func load(_ key: String) async throws -> StorageEntry? {
    let entry = try await base.load(key)
    loads.append(key)
    await gate.wait()
    return entry
  }

  func save(_ entries: [String: StorageEntry]) async throws {
    await beforeSave()
    try await base.save(entries)
    await afterSave()
  }
  func remove(_ keys: [String]) async throws { try await base.remove(keys) }
  func keys(withPrefix prefix: String) async throws -> [String] {
    try await base.keys(withPrefix: prefix)
  }
  func setAside(_ key: String) async throws {
    await beforeSettingAside()
    try await base.setAside(key)
  }
}

func savedEntry(_ text: String, at date: Date = Date()) -> StorageEntry {
  StorageEntry(version: 0, date: date, data: Data(text.utf8))
}

func savingClient(_ storage: any OperationStorage) -> OperationClient {
  OperationClient(defaults: .testing, storage: storage)
}
