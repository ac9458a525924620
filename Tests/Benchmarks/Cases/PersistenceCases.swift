import FoundationEssentials
import Glibc
import Operation

extension Catalogue {
  static let persistence: [Benchmark] = [
    Benchmark(
      name: "start, first saved value", floor: "list a directory, read and decode one file",
      sizes: [100, 1_000, 10_000], unit: "values", growth: .linear
    ) { size in
      let saved = try await SavedItems(size)
      return Pair(
        subject: .each { try await saved.start(1) }, floor: .each { try saved.readFiles(1) })
    },
    Benchmark(
      name: "start, all saved values", floor: "list a directory, read and decode each file",
      sizes: [100, 1_000, 10_000], unit: "values", limit: 20, growth: .flat
    ) { size in
      let saved = try await SavedItems(size)
      return Pair(
        subject: Work(count: size) { try await saved.start($0) },
        floor: Work(count: size) { try saved.readFiles($0) })
    },
    Benchmark(
      name: "saving changes", floor: "encode, write and rename a file for each",
      sizes: [100, 1_000],
      unit: "changes", limit: 3, growth: .flat
    ) { size in
      let saved = try await SavedItems(size)
      let (client, stores) = try saved.unflushedClient()
      return Pair(
        subject: Work(count: size) { _ in
          try await timed {
            for store in stores { store.currentValue = (store.currentValue ?? 0) + 1 }
            try await client.flush()
          }
        }, floor: Work(count: size) { try saved.writeFiles($0) })
    },
    Benchmark(
      name: "fetch with persisted(), no storage", floor: "the fetch case", limit: 1.25
    ) { _ in
      let client = OperationClient()
      let store = client.store(for: Item(path: ["item"]).persisted())
      return Pair(
        subject: .loop(keeping: client) { _ in blackHole(try await store.fetch()) },
        floor: Fixtures.fetch())
    },
  ]
}

/// Values that a program has saved in a directory, which is removed with this object.
private final class SavedItems: Sendable {
  /// A fetch returns another value.
  private static let value = 7

  private let files = UnflushedFiles()
  private let items: [Item]

  init(_ size: Int) async throws {
    items = Fixtures.items(size)
    let (client, stores) = try unflushedClient()
    for store in stores { store.currentValue = Self.value }
    try await client.flush()
  }

  deinit { files.removeDirectory() }

  private static func request(_ item: Item) -> some QueryRequest<Int, Item.State> {
    item.neverStale().persisted()
  }

  /// Returns a client that does not wait for the disk, and its stores.
  func unflushedClient() throws -> (OperationClient, [OperationStore<Item.State>]) {
    let client = OperationClient(storage: try FileStorage(files))
    return (client, items.map { client.store(for: Self.request($0)) })
  }

  /// Starts a program, and returns the time until a number of values are displayed.
  func start(_ count: Int) async throws -> Double {
    try await timed {
      let client = OperationClient(storage: try FileStorage(files))
      for item in items.prefix(count) { blackHole(client.store(for: Self.request(item))) }
      for item in items.prefix(count) {
        let value: Int = try await client.ensure(Self.request(item))
        precondition(value == Self.value, "The value was fetched.")
      }
    }
  }

  /// Reads and decodes a number of files, and returns the time.
  func readFiles(_ count: Int) throws -> Double {
    try timed {
      for name in try files.names().filter({ $0.hasSuffix(".entry") }).prefix(count) {
        blackHole(try files.read(name)?.count)
        blackHole(try JSONDecoder().decode(Int.self, from: Data("7".utf8)))
      }
    }
  }

  /// Encodes a number of values, writes a new file for each, renames it, and returns the time.
  func writeFiles(_ count: Int) throws -> Double {
    try timed {
      for index in 0..<count {
        try files.write(Array(try JSONEncoder().encode(index)), to: "floor-\(index).new")
        try files.rename("floor-\(index).new", to: "floor-\(index)")
      }
    }
  }
}

/// The files of a new directory, which is in memory where the system supports it: the speed of a
/// disk is not that of the library.
private struct UnflushedFiles: StorageFiles {
  let directory: String

  init() {
    let name = "benchmarks-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    let memory = "/dev/shm"
    let isInMemory = FileManager.default.isWritableFile(atPath: memory)
    directory = "\(isInMemory ? memory : FileManager.default.temporaryDirectory.path)/\(name)"
    mkdir(directory, 0o700)
  }

  func removeDirectory() { try? FileManager.default.removeItem(atPath: directory) }

  func names() throws(StorageError) -> [String] {
    (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
  }

  func read(_ name: String) throws(StorageError) -> [UInt8]? {
    FileManager.default.contents(atPath: "\(directory)/\(name)").map(Array.init)
  }

  func write(_ bytes: [UInt8], to name: String) throws(StorageError) {
    do { try Data(bytes).write(to: URL(filePath: "\(directory)/\(name)")) } catch {
      throw failure(name)
    }
  }

  func rename(_ name: String, to new: String) throws(StorageError) {
    if Glibc.rename("\(directory)/\(name)", "\(directory)/\(new)") != 0 { throw failure(name) }
  }

  func remove(_ name: String) throws(StorageError) { unlink("\(directory)/\(name)") }

  func flush(_ name: String) throws(StorageError) {}
  func flushNames() throws(StorageError) {}

  private func failure(_ name: String) -> StorageError {
    .system(call: "write", file: name, code: errno)
  }
}
