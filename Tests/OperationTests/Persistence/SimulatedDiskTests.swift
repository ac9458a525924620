import FoundationEssentials
import Operation
import Synchronization
import Testing

/// A disk in memory that can fail at one call, and can lose power. After a loss of power, changes
/// that were not flushed are incomplete, or in another order.
private final class SimulatedDisk: StorageFiles {
  /// What a loss of power does to changes that were not flushed.
  enum Loss: CaseIterable {
    /// All of the changes are lost.
    case all
    /// Half of the contents is lost, and the names have not changed.
    case tornContents
    /// Half of the contents is lost, and the names have changed: the disk reordered the changes.
    case namesBeforeContents
    /// No change is lost.
    case none
  }

  private struct File: Sendable {
    var contents: [UInt8] = []
    var flushed: [UInt8] = []
  }

  private struct Disk: Sendable {
    /// The files by name: the current names, and those of the last flush of the names.
    var names: [String: Int] = [:]
    var flushedNames: [String: Int] = [:]
    var files: [File] = []
    var calls = 0
    /// The call that fails, and whether all calls after it fail, too, because the power is lost.
    var failure: (call: Int, isLast: Bool)?
  }

  let directory = "disk"
  private let disk: Mutex<Disk>

  init() { disk = Mutex(Disk()) }

  private init(_ disk: Disk) { self.disk = Mutex(disk) }

  var callCount: Int { disk.withLock { $0.calls } }

  /// Makes the call with this number fail, counted from zero and from now on.
  func fail(at call: Int, andAfter isLast: Bool) {
    disk.withLock {
      $0.calls = 0
      $0.failure = (call, isLast)
    }
  }

  func recover() { disk.withLock { $0.failure = nil } }

  /// Returns the disk after a loss of power.
  func restarted(_ loss: Loss) -> SimulatedDisk {
    var disk = disk.withLock { $0 }
    disk.failure = nil
    switch loss {
    case .all, .tornContents: disk.names = disk.flushedNames
    case .namesBeforeContents, .none: break
    }
    for index in disk.files.indices {
      let file = disk.files[index]
      switch loss {
      case .all: disk.files[index].contents = file.flushed
      case .tornContents, .namesBeforeContents:
        if file.flushed != file.contents {
          disk.files[index].contents = Array(file.contents.prefix(file.contents.count / 2))
        }
      case .none: break
      }
      disk.files[index].flushed = disk.files[index].contents
    }
    disk.flushedNames = disk.names
    return SimulatedDisk(disk)
  }

  /// Makes a call, unless it is the one that fails. A write that fails is torn.
  private func call<Output: Sendable>(
    _ body: (inout Disk, _ fails: Bool) -> Output
  ) throws(StorageError) -> Output {
    let output: Output? = disk.withLock { disk in
      defer { disk.calls += 1 }
      let isFailing =
        disk.failure.map { disk.calls == $0.call || ($0.isLast && disk.calls > $0.call) } ?? false
      let output = body(&disk, isFailing)
      return isFailing ? nil : output
    }
    if let output { return output }
    throw .system(call: "simulated", file: "disk", code: 5)
  }

  func names() throws(StorageError) -> [String] {
    try call { disk, _ in disk.names.keys.sorted() }
  }

  func read(_ name: String) throws(StorageError) -> [UInt8]? {
    try call { disk, _ in disk.names[name].map { disk.files[$0].contents } }
  }

  func write(_ data: [UInt8], to name: String) throws(StorageError) {
    try call { disk, fails in
      disk.files.append(File(contents: fails ? Array(data.prefix(data.count / 3)) : data))
      disk.names[name] = disk.files.count - 1
    }
  }

  func flush(_ name: String) throws(StorageError) {
    try call { disk, fails in
      if !fails, let file = disk.names[name] {
        disk.files[file].flushed = disk.files[file].contents
      }
    }
  }

  func rename(_ name: String, to new: String) throws(StorageError) {
    try call { disk, fails in
      if !fails { disk.names[new] = disk.names.removeValue(forKey: name) }
    }
  }

  func remove(_ name: String) throws(StorageError) {
    try call { disk, fails in if !fails { disk.names[name] = nil } }
  }

  func flushNames() throws(StorageError) {
    try call { disk, fails in if !fails { disk.flushedNames = disk.names } }
  }
}

private func entry(_ text: String) -> StorageEntry {
  StorageEntry(
    version: 0, date: Date(timeIntervalSinceReferenceDate: 0),
    data: Data(String(repeating: text, count: 20).utf8))
}

@Suite("Storage on a disk that fails, tears and reorders")
struct SimulatedDiskTests {
  private static let keys = ["a", "b", "c"]

  /// A storage with old entries.
  private func prepared() async throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    try await FileStorage(disk).save(["a": entry("old"), "b": entry("old")])
    return disk
  }

  /// The number of calls of an action on a prepared disk.
  private func callCount(of action: (FileStorage) async throws -> Void) async throws -> Int {
    let disk = try await prepared()
    let storage = try FileStorage(disk)
    disk.fail(at: .max, andAfter: false)
    try await action(storage)
    return disk.callCount
  }

  private func save(_ storage: FileStorage) async throws {
    try await storage.save(["a": entry("new"), "c": entry("new")])
  }

  @Test(
    "After a loss of power at any call of a save, each key has its complete old or new entry",
    arguments: SimulatedDisk.Loss.allCases)
  fileprivate func powerLoss(_ loss: SimulatedDisk.Loss) async throws {
    let count = try await callCount(of: save)
    #expect(count >= 7)
    for call in 0...count {
      let disk = try await prepared()
      let storage = try FileStorage(disk)
      disk.fail(at: call, andAfter: true)
      let hasSaved = (try? await save(storage)) != nil
      #expect(hasSaved == (call == count))
      let next = try FileStorage(disk.restarted(loss))
      let found = [try await next.load("a"), try await next.load("b"), try await next.load("c")]
      #expect(found[0] == entry("new") || (!hasSaved && found[0] == entry("old")))
      #expect(found[1] == entry("old"))
      #expect(found[2] == entry("new") || (!hasSaved && found[2] == nil))
      #expect(try await next.keys(withPrefix: "").count == found.compactMap { $0 }.count)
    }
  }

  @Test(
    "A save with one failed call throws and loses no entry, and the next save succeeds"
  )
  func oneFailure() async throws {
    let count = try await callCount(of: save)
    for call in 0..<count {
      let disk = try await prepared()
      let storage = try FileStorage(disk)
      disk.fail(at: call, andAfter: false)
      await #expect(throws: StorageError.self) { try await save(storage) }
      disk.recover()
      let found = try await storage.load("a")
      #expect(found == entry("old") || found == entry("new"))
      try await save(storage)
      let next = try FileStorage(disk.restarted(.all))
      #expect(try await next.load("a") == entry("new"))
      #expect(try await next.load("c") == entry("new"))
    }
  }

  @Test(
    "After a loss of power at any call of a removal, an entry is complete or removed",
    arguments: SimulatedDisk.Loss.allCases)
  fileprivate func removal(_ loss: SimulatedDisk.Loss) async throws {
    let count = try await callCount { try await $0.remove(["a", "b"]) }
    for call in 0...count {
      let disk = try await prepared()
      let storage = try FileStorage(disk)
      disk.fail(at: call, andAfter: true)
      let hasRemoved = (try? await storage.remove(["a", "b"])) != nil
      let next = try FileStorage(disk.restarted(loss))
      for key in ["a", "b"] {
        let found = try await next.load(key)
        #expect(found == nil || (!hasRemoved && found == entry("old")))
      }
    }
  }

  @Test("An entry that was set aside is no entry after a loss of power")
  func settingAside() async throws {
    let disk = try await prepared()
    try await FileStorage(disk).setAside("a")
    let restarted = disk.restarted(.all)
    #expect(try await FileStorage(restarted).load("a") == nil)
    #expect(try restarted.names().filter { $0.hasSuffix(".aside-1") }.count == 1)
  }

  @Test("A disk that cannot be read is an error for a storage that only reads, too")
  func unreadable() async throws {
    let disk = try await prepared()
    let storage = try FileStorage(disk, access: .readOnly)
    // The names can be listed.
    disk.fail(at: 1, andAfter: false)
    await #expect(throws: StorageError.self) { try await storage.keys(withPrefix: "") }
    #expect(try await storage.keys(withPrefix: "").count == 2)
  }

  @Test("A file that cannot be removed does not prevent others from being removed")
  func failedRemoval() async throws {
    let disk = try await prepared()
    let storage = try FileStorage(disk)
    disk.fail(at: 0, andAfter: false)
    await #expect(throws: StorageError.self) { try await storage.remove(["a", "b"]) }
    let next = try FileStorage(disk.restarted(.all))
    #expect(try await next.load("a") == entry("old"))
    #expect(try await next.load("b") == nil)
  }

  @Test(
    "A mutation is called when any call of the disk fails, and is not resumed after a recovery"
  )
  func underAClient() async throws {
    for call in 0..<12 {
      let disk = SimulatedDisk()
      let client = OperationClient(
        defaults: .testing, clock: ManualClock(), storage: try FileStorage(disk))
      let mutation = Mutation(path: ["create"]) { (text: String, _) async throws -> Int in
        text.count
      }
      disk.fail(at: call, andAfter: false)
      let store = client.store(for: mutation.persisted())
      let reports = EventLog<OperationIssue>()
      let count = try await OperationIssue.withHandler({ reports.append($0) }) {
        try await store.mutate(with: "abc")
      }
      #expect(count == 3)
      #expect(reports.values.allSatisfy { $0.kind == .storageFailure })
      // A batch that has failed may still be in flight.
      await OperationIssue.withHandler({ _ in }) { try? await client.flush() }
      disk.recover()
      try await client.flush()
      let next = OperationClient(
        defaults: .testing, clock: ManualClock(), storage: try FileStorage(disk.restarted(.all)))
      #expect(try await next.resumeMutations { $0.register(mutation) }.isEmpty)
    }
  }
}
