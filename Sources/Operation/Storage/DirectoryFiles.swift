import FoundationEssentials
import Glibc

/// A file that is locked until this is released. To close it is not enough: a child process has it open,
/// too, until it executes its program.
private final class FileLock: Sendable {
  let file: FileDescriptor

  init(file: FileDescriptor) { self.file = file }

  deinit { flock(file.number, LOCK_UN) }
}

/// The files of one directory, which only its user can access.
struct DirectoryFiles: StorageFiles {
  private static let lockName = "lock"

  let directory: String
  private let descriptor: FileDescriptor
  /// The lock file; `nil` if the directory is only read. The kernel unlocks it when the process ends.
  private var lock: FileLock?

  /// Opens a directory, and creates it if needed.
  init(_ directory: String, isReadOnly: Bool) throws(StorageError) {
    self.directory = directory
    if !isReadOnly { try Self.create(directory) }
    let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC
    descriptor = FileDescriptor(Glibc.open(directory, flags))
    if descriptor.number < 0 {
      throw errno == ENOTDIR
        ? Self.unusable(directory, "it is a file") : Self.unusable(directory)
    }
    if isReadOnly { return }
    try makePrivate()
    lock = FileLock(file: try lockFile())
  }

  /// Creates a directory and those that contain it.
  private static func create(_ directory: String) throws(StorageError) {
    var path = directory.hasPrefix("/") ? "/" : ""
    for component in directory.split(separator: "/") {
      path += component + "/"
      // One that exists is checked when the last one is opened.
      if mkdir(path, 0o700) == 0 {
        // Its name survives a loss of power, where the directory that has it can be opened.
        let parent = FileDescriptor(Glibc.open(path + "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC))
        if parent.number >= 0 { fsync(parent.number) }
      } else if errno != EEXIST, errno != EISDIR {
        throw unusable(directory, "\(path): \(SystemError().text)")
      }
    }
  }

  private func makePrivate() throws(StorageError) {
    var status = stat()
    guard fstat(descriptor.number, &status) == 0 else { throw Self.unusable(directory) }
    if status.st_uid != geteuid() { throw Self.unusable(directory, "it belongs to another user") }
    if status.st_mode & 0o077 == 0 { return }
    // A directory that others use for something else does not become private by accident. Other programs have
    // lock files of that name, too.
    guard try names().allSatisfy({ $0 == Self.lockName || StoredFiles.isOwn($0) }) else {
      throw Self.unusable(
        directory,
        "others can access it, and it contains other files; use a directory of its own (mode 0700)")
    }
    guard fchmod(descriptor.number, 0o700) == 0 else { throw Self.unusable(directory) }
  }

  private func lockFile() throws(StorageError) -> FileDescriptor {
    let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW
    let lock = FileDescriptor(openat(descriptor.number, Self.lockName, flags, 0o600))
    guard lock.number >= 0 else { throw Self.unusable(directory) }
    if flock(lock.number, LOCK_EX | LOCK_NB) == 0 { return lock }
    throw errno == EWOULDBLOCK ? .inUse(directory: directory) : Self.unusable(directory)
  }

  /// Returns an error that says why a directory cannot be used: with the error of the last call, if no
  /// reason is given.
  private static func unusable(
    _ directory: String, _ reason: String = SystemError().text
  ) -> StorageError { .unusable(directory: directory, reason: reason) }

  private func error(_ call: String, _ name: String) -> StorageError {
    .system(call: call, file: "\(directory)/\(name)", code: errno)
  }

  private func open(_ name: String, _ flags: Int32) throws(StorageError) -> FileDescriptor {
    let number = openat(descriptor.number, name, flags | O_CLOEXEC | O_NOFOLLOW, 0o600)
    if number < 0 { throw error("open", name) }
    return FileDescriptor(number)
  }

  func names() throws(StorageError) -> [String] {
    do {
      // By the descriptor: a relative path may mean another directory by now.
      return try FileManager.default.contentsOfDirectory(
        atPath: "/proc/self/fd/\(descriptor.number)")
    } catch {
      throw Self.unusable(directory, "its files cannot be listed: \(error)")
    }
  }

  func read(_ name: String) throws(StorageError) -> [UInt8]? {
    // `O_NONBLOCK`: a pipe with this name must not block.
    let number = openat(descriptor.number, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    let file = FileDescriptor(number)
    let foreign = StorageError.foreign(key: "", file: "\(directory)/\(name)")
    if number < 0 {
      if errno == ENOENT { return nil }
      // A symbolic link, or a file that another user does not let this one read.
      throw errno == ELOOP || errno == EACCES || errno == ENXIO ? foreign : error("open", name)
    }
    var status = stat()
    guard fstat(number, &status) == 0 else { throw error("fstat", name) }
    guard status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() else { throw foreign }
    // Of a file that the memory may not hold, the header is enough to find that it is damaged.
    return try read(file, count: status.st_size > 1 << 32 ? 512 : Int(status.st_size), name)
  }

  private func read(
    _ file: FileDescriptor, count: Int, _ name: String
  ) throws(StorageError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var position = 0
    while position < count {
      let read = bytes.withUnsafeMutableBytes { bytes in
        Glibc.read(file.number, bytes.baseAddress?.advanced(by: position), count - position)
      }
      if read < 0, errno == EINTR { continue }
      if read < 0 { throw error("read", name) }
      // Another program has made it shorter, which the check of its header finds.
      if read == 0 { return Array(bytes.prefix(position)) }
      position += read
    }
    return bytes
  }

  func write(_ bytes: [UInt8], to name: String) throws(StorageError) {
    let file = try open(name, O_WRONLY | O_CREAT | O_TRUNC)
    var position = 0
    while position < bytes.count {
      let written = bytes.withUnsafeBytes { bytes in
        Glibc.write(file.number, bytes.baseAddress?.advanced(by: position), bytes.count - position)
      }
      if written < 0, errno == EINTR { continue }
      if written < 0 { throw error("write", name) }
      position += written
    }
  }

  func flush(_ name: String) throws(StorageError) {
    // Another descriptor of the same file flushes what any of them has written.
    let file = try open(name, O_RDONLY)
    if fsync(file.number) != 0 { throw error("fsync", name) }
  }

  func rename(_ name: String, to new: String) throws(StorageError) {
    guard renameat(descriptor.number, name, descriptor.number, new) == 0 else {
      throw error("rename", name)
    }
  }

  func remove(_ name: String) throws(StorageError) {
    if unlinkat(descriptor.number, name, 0) != 0, errno != ENOENT { throw error("unlink", name) }
  }

  func flushNames() throws(StorageError) {
    if fsync(descriptor.number) != 0 { throw error("fsync", "") }
  }
}
