import Foundation
import Glibc
import Operation
import Testing

/// A directory that is removed at the end of a test.
private final class TemporaryDirectory {
  let path: String

  init() {
    path = NSTemporaryDirectory() + "/swift-operation-\(UUID().uuidString)"
  }

  deinit {
    umount2(path, Int32(MNT_DETACH))
    try? FileManager.default.removeItem(atPath: path)
  }

  /// Whether a file system of 64 KiB was mounted here. The deinitialiser unmounts it.
  lazy var mountsSmallDisk: Bool = {
    mkdir(path, 0o700)
    return mount("none", path, "tmpfs", 0, "size=64k,mode=0700") == 0
  }()

  var names: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }

  /// The only file of an entry.
  var file: String { "\(path)/\(names.first { $0.hasSuffix(".entry") } ?? "")" }

  func mode(of path: String) -> mode_t {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
  }
}

private let entry = StorageEntry(
  version: 3, date: Date(timeIntervalSinceReferenceDate: 785_788_732.1234567),
  data: Data([0, 10, 255, 61]))

@Suite("File storage")
struct FileStorageTests {
  private let directory = TemporaryDirectory()

  @Test("A released storage unlocks its directory, even if a starting child has the file open")
  func unlock() async throws {
    var copy: Int32 = -1
    do {
      let storage = try FileStorage(directory: directory.path)
      try await storage.save(["values/posts/3": entry])
      let files = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
      let lock = try #require(
        files.first {
          let link = "/proc/self/fd/\($0)"
          let file = try? FileManager.default.destinationOfSymbolicLink(atPath: link)
          return file?.hasSuffix(URL(filePath: directory.path).lastPathComponent + "/lock") == true
        }.flatMap { Int32($0) })
      copy = fcntl(lock, F_DUPFD_CLOEXEC, 0)
    }
    defer { close(copy) }
    let storage = try FileStorage(directory: directory.path)
    #expect(try await storage.load("values/posts/3") == entry)
  }

  @Test("A directory is unlocked as soon as the last call has returned")
  func reopened() async throws {
    for _ in 0..<500 {
      let storage = try FileStorage(directory: directory.path)
      #expect(try await storage.load("values/none") == nil)
    }
  }

  @Test("An entry is loaded as it was saved, by another storage")
  func roundTrip() async throws {
    do {
      let storage = try FileStorage(directory: directory.path)
      try await storage.save(["values/posts/3": entry, "values/päge \u{1F600}": entry])
      #expect(try await storage.load("values/none") == nil)
    }
    let storage = try FileStorage(directory: directory.path)
    #expect(try await storage.load("values/posts/3") == entry)
    #expect(try await storage.load("values/päge \u{1F600}") == entry)
    #expect(try await storage.keys(withPrefix: "values/po") == ["values/posts/3"])
    #expect(try await storage.keys(withPrefix: "values/").count == 2)
    #expect(try await storage.keys(withPrefix: "calls/").isEmpty)
    try await storage.remove(["values/posts/3", "values/none"])
    #expect(try await storage.load("values/posts/3") == nil)
    #expect(try await storage.keys(withPrefix: "values/").count == 1)
  }

  @Test(
    "Only the user can access the directory and the files, whose names and first lines are readable"
  )
  func permissions() async throws {
    let previous = umask(0)
    let storage = try FileStorage(directory: directory.path + "/a/b")
    try await storage.save(["values/posts/3": entry])
    umask(previous)
    let nested = directory.path + "/a/b"
    #expect(directory.mode(of: nested) == 0o700)
    let names = try FileManager.default.contentsOfDirectory(atPath: nested).sorted()
    #expect(names.count == 2)
    #expect(names[0] == "lock" && names[1].hasPrefix("values_posts_3-"))
    for name in names { #expect(directory.mode(of: "\(nested)/\(name)") == 0o600) }
    let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(nested)/\(names[1])"))
    let line = String(decoding: bytes.prefix { $0 != 10 }, as: UTF8.self)
    #expect(
      line.hasPrefix("swift-operation entry format=1 version=3 date=785788732.1234567 (2025-11-2"))
  }

  @Test("A second storage on a directory throws an error, unless it is read-only")
  func secondStorage() async throws {
    let first = try FileStorage(directory: directory.path)
    try await first.save(["a": entry])
    #expect(throws: StorageError.inUse(directory: directory.path)) {
      _ = try FileStorage(directory: directory.path)
    }
    let reader = try FileStorage(directory: directory.path, access: .readOnly)
    #expect(try await reader.load("a") == entry)
    let error = StorageError.readOnly(directory: directory.path)
    await #expect(throws: error) { try await reader.save(["b": entry]) }
    await #expect(throws: error) { try await reader.remove(["a"]) }
    await #expect(throws: error) { try await reader.setAside("a") }
    withExtendedLifetime(first) {}
  }

  @Test(
    "A read-only storage moves no file aside, and its client saves nothing and reports nothing")
  func readOnly() async throws {
    let writing = try FileStorage(directory: directory.path)
    try await writing.save(["values/posts": entry, "values/other": entry])
    let torn = try #require(directory.names.first { $0.contains("posts") })
    try Data("torn".utf8).write(to: URL(fileURLWithPath: "\(directory.path)/\(torn)"))
    let names = directory.names
    let reading = try FileStorage(directory: directory.path, access: .readOnly)
    await #expect(throws: StorageError.self) { try await reading.load("values/posts") }
    await #expect(throws: StorageError.self) { try await reading.load("values/posts") }
    #expect(try await reading.keys(withPrefix: "values/") == ["values/other"])
    let client = OperationClient(defaults: .testing, storage: reading)
    let query = Query<Int, any Error>(path: ["mine"]) { _ in 1 }.persisted()
    let reports = try await issues {
      try await client.fetch(query)
      try await client.flush()
    }.issues
    #expect(reports.isEmpty)
    #expect(directory.names == names)
  }

  @Test("A directory that cannot be used is refused with a reason")
  func unusableDirectories() throws {
    try FileManager.default.createDirectory(
      atPath: directory.path, withIntermediateDirectories: true)
    let file = directory.path + "/file"
    try Data().write(to: URL(fileURLWithPath: file))
    for path in [file, file + "/below"] {
      #expect(throws: StorageError.self) { _ = try FileStorage(directory: path) }
    }
    #expect(throws: StorageError.self) {
      _ = try FileStorage(directory: directory.path + "/missing", access: .readOnly)
    }
    // Others can access the directory, and it has a file that is not from a storage.
    chmod(directory.path, 0o755)
    let error = #expect(throws: StorageError.self) {
      _ = try FileStorage(directory: directory.path)
    }
    #expect(error?.description.contains("others can access it") == true)
    #expect(directory.names == ["file"])
    unlink(file)
    _ = try FileStorage(directory: directory.path)
    #expect(directory.mode(of: directory.path) == 0o700)
    // One of a storage becomes private again.
    chmod(directory.path, 0o755)
    _ = try FileStorage(directory: directory.path)
    #expect(directory.mode(of: directory.path) == 0o700 && directory.names == ["lock"])
  }

  @Test(
    "A load of a torn, changed or too new file throws once, and moves the file aside",
    arguments: [0, 1, 30, 100, -1, -2, -3])
  func damagedFiles(cut: Int) async throws {
    let storage = try FileStorage(directory: directory.path)
    try await storage.save(["a": entry])
    let url = URL(fileURLWithPath: directory.file)
    var bytes = try Data(contentsOf: url)
    switch cut {
    case -1: bytes[bytes.count - 1] ^= 1
    case -2: bytes.append(0)
    case -3:
      let text = String(decoding: bytes.prefix { $0 != 10 }, as: UTF8.self)
      bytes = Data(text.replacing("format=1", with: "format=2").utf8) + bytes.drop { $0 != 10 }
    default: bytes = bytes.prefix(cut)
    }
    try bytes.write(to: url)
    let error = await #expect(throws: StorageError.self) { try await storage.load("a") }
    if cut == -3, case .tooNew("a", _, 2)? = error {} else { #expect(cut != -3) }
    #expect(try await storage.load("a") == nil)
    #expect(directory.names.filter { $0.hasSuffix(".aside-1") }.count == 1)
    try await storage.save(["a": entry])
    try await storage.setAside("a")
    #expect(directory.names.filter { $0.hasSuffix(".aside-2") }.count == 1)
  }

  @Test("Files that have the names of others are moved aside, and have no keys")
  func swappedFiles() async throws {
    let storage = try FileStorage(directory: directory.path)
    try await storage.save(["a": entry, "b": entry])
    let names = directory.names.filter { $0.hasSuffix(".entry") }
    let paths = (names + ["between"]).map { "\(directory.path)/\($0)" }
    for (old, new) in [(0, 2), (1, 0), (2, 1)] { #expect(rename(paths[old], paths[new]) == 0) }
    let reading = try FileStorage(directory: directory.path, access: .readOnly)
    await #expect(throws: StorageError.self) { try await reading.load("a") }
    #expect(try await reading.keys(withPrefix: "").isEmpty)
    await #expect(throws: StorageError.self) { try await storage.load("a") }
    await #expect(throws: StorageError.self) { try await storage.keys(withPrefix: "") }
    #expect(try await storage.keys(withPrefix: "").isEmpty)
    #expect(directory.names.filter { $0.hasSuffix(".aside-1") } == names.map { "\($0).aside-1" })
  }

  @Test("A file that does not fit into memory is moved aside")
  func endlessFile() async throws {
    let storage = try FileStorage(directory: directory.path)
    try await storage.save(["values/a": entry])
    try #require(truncate(directory.file, 1 << 43) == 0)
    await #expect(throws: StorageError.self) { try await storage.load("values/a") }
    #expect(directory.names.contains { $0.hasSuffix(".aside-1") })
    #expect(try await storage.load("values/a") == nil)
  }

  @Test("Damaged files are moved aside when all values are removed, and the others are removed")
  func clearBesideDamage() async throws {
    do {
      let storage = try FileStorage(directory: directory.path)
      for number in 0..<4 { try await storage.save(["values/\(number)": entry]) }
    }
    for name in directory.names.filter({ $0.hasSuffix(".entry") }).prefix(2) {
      truncate("\(directory.path)/\(name)", 100)
    }
    let storage = try FileStorage(directory: directory.path)
    let client = OperationClient(defaults: .testing, clock: ManualClock(), storage: storage)
    let reports = try await issues {
      client.clearStores()
      try await client.flush()
    }.issues
    #expect(reports.map(\.kind) == [.unreadableEntry, .unreadableEntry])
    #expect(!directory.names.contains { $0.hasSuffix(".entry") })
  }

  @Test("A link, or anything that is no regular file, is not followed and is moved aside")
  func foreignFiles() async throws {
    let storage = try FileStorage(directory: directory.path)
    try await storage.save(["a": entry])
    let file = directory.file
    for make in [
      { symlink("/etc/passwd", file) }, { mkfifo(file, 0o600) }, { mkdir(file, 0o700) },
      { mknod(file, S_IFSOCK | 0o600, 0) },
    ] {
      unlink(file)
      rmdir(file)
      #expect(make() == 0)
      let error = await #expect(throws: StorageError.self) { try await storage.load("a") }
      if case .foreign("a", _)? = error {} else { Issue.record("\(String(describing: error))") }
      #expect(try await storage.load("a") == nil)
    }
    if geteuid() == 0 {
      try await storage.save(["a": entry])
      chown(file, 12_345, 12_345)
      let error = await #expect(throws: StorageError.self) { try await storage.load("a") }
      if case .foreign("a", _)? = error {} else { Issue.record("\(String(describing: error))") }
    }
  }

  @Test("A lock file that is a link is not followed, and the directory is refused")
  func linkedLock() throws {
    mkdir(directory.path, 0o700)
    symlink(directory.path + "/target", directory.path + "/lock")
    let error = #expect(throws: StorageError.self) {
      _ = try FileStorage(directory: directory.path)
    }
    if case .unusable? = error {} else { Issue.record("\(String(describing: error))") }
    #expect(directory.names == ["lock"])
  }

  @Test("A directory of another user is refused")
  func foreignDirectory() throws {
    mkdir(directory.path, 0o700)
    let isRoot = geteuid() == 0
    if isRoot { chown(directory.path, 12_345, 12_345) }
    let error = #expect(throws: StorageError.self) {
      _ = try FileStorage(directory: isRoot ? directory.path : "/")
    }
    #expect(error?.description.contains("belongs to another user") == true)
    #expect(directory.names.isEmpty)
  }

  @Test("A directory that others can access becomes private if all its files are of a storage")
  func sharedDirectory() throws {
    mkdir(directory.path, 0o700)
    chmod(directory.path, 0o755)
    let create = { (name: String) in
      let path = directory.path + "/" + name
      #expect(FileManager.default.createFile(atPath: path, contents: nil))
    }
    // Other programs have lock files of that name, too.
    for name in ["lock", "status"] { create(name) }
    let error = #expect(throws: StorageError.self) {
      _ = try FileStorage(directory: directory.path)
    }
    if case .unusable? = error {} else { Issue.record("\(String(describing: error))") }
    #expect(directory.mode(of: directory.path) == 0o755)
    unlink(directory.path + "/status")
    for name in ["a-1.entry", "b-1.entry-new", "c-1.entry.aside-2"] { create(name) }
    _ = try FileStorage(directory: directory.path)
    #expect(directory.mode(of: directory.path) == 0o700)
  }

  @Test("A relative path is one in the present directory, and a URL is its path")
  func otherForms() async throws {
    let relative = ".build/swift-operation-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: relative) }
    do { try await FileStorage(directory: relative).save(["a": entry]) }
    #expect(FileManager.default.fileExists(atPath: relative + "/lock"))
    let url = URL(fileURLWithPath: relative)
    #expect(try await FileStorage(directory: url).load("a") == entry)
  }

  @Test("Keys with another prefix are not listed, also if the names of their files begin alike")
  func otherPrefix() async throws {
    let storage = try FileStorage(directory: directory.path)
    try await storage.save(["a/b": entry, "a_b": entry, "a=b": entry])
    #expect(try await storage.keys(withPrefix: "a/") == ["a/b"])
  }

  @Test("A directory in the place of a file is an error, and leaves no temporary file")
  func occupiedName() async throws {
    let storage = try FileStorage(directory: directory.path)
    try await storage.save(["a": entry])
    let file = directory.file
    unlink(file)
    mkdir(file, 0o700)
    for (call, body) in [
      ("rename", { try await storage.save(["a": entry]) }),
      ("unlink", { try await storage.remove(["a"]) }),
    ] {
      let error = await #expect(throws: StorageError.self) { try await body() }
      if case .system(call, _, _)? = error {} else { Issue.record("\(String(describing: error))") }
    }
    #expect(!directory.names.contains { $0.hasSuffix("-new") })
  }

  @Test("Temporary files of a program that was killed are removed, and other files are not touched")
  func leftovers() async throws {
    do { _ = try FileStorage(directory: directory.path) }
    for name in ["a-0.entry-new", "notes.txt"] {
      try Data("x".utf8).write(to: URL(fileURLWithPath: "\(directory.path)/\(name)"))
    }
    let storage = try FileStorage(directory: directory.path)
    try await storage.save(["a": entry])
    try await storage.remove(["a"])
    #expect(directory.names == ["lock", "notes.txt"])
  }

  @Test(
    "A full disk is an error, and no saved entry is lost",
    .enabled(if: TemporaryDirectory().mountsSmallDisk, "a small file system can be mounted"))
  func fullDisk() async throws {
    #expect(directory.mountsSmallDisk)
    let storage = try FileStorage(directory: directory.path)
    try await storage.save(["a": entry])
    var large = entry
    large.data = Data(count: 1_000_000)
    let error = await #expect(throws: StorageError.self) { try await storage.save(["a": large]) }
    if case .system("write", _, ENOSPC)? = error {
    } else {
      Issue.record("\(String(describing: error))")
    }
    #expect(try await storage.load("a") == entry)
    try await storage.save(["b": entry])
    #expect(!directory.names.contains { $0.hasSuffix("-new") })
  }
}
