import FoundationEssentials
import Glibc

/// The socket of an inspector, on which it listens, and its file.
struct InspectorSocket: Sendable {
  let path: String
  let listener: FileDescriptor
  /// The device and the inode of the file.
  private let file: [UInt64]

  /// Listens at a path. A socket of this user on which nobody listens is replaced.
  init(at path: String) throws(OperationInspectorError) {
    listener = try Self.newSocket(for: path)
    self.path = path
    // One program at a time, until it listens: before that, another one would take its socket for an abandoned
    // one, and two that replace the same one would replace each other's.
    let folder = Self.lockedFolder(of: path)
    defer { if let folder { flock(folder.number, LOCK_UN) } }
    if try !Self.bind(listener, to: path) {
      try Self.checkIsAbandoned(path)
      unlink(path)
      guard try Self.bind(listener, to: path) else { throw .occupied(path: path) }
    }
    // Before it listens, so that no other user connects before.
    guard chmod(path, 0o600) == 0, let status = Self.status(of: path) else {
      throw .system(path: path, code: errno)
    }
    file = [UInt64(status.st_dev), UInt64(status.st_ino)]
    guard listen(listener.number, 64) == 0 else { throw .system(path: path, code: errno) }
  }

  /// Returns the folder of a path, which no other inspector locks until it is unlocked. Returns `nil` if it cannot
  /// be locked: an inspector has the lock for a moment only, so another program that keeps it is waited for no
  /// longer than about 0.1 s.
  private static func lockedFolder(of path: String) -> FileDescriptor? {
    let name = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
    let folder = FileDescriptor(open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC))
    for _ in 0..<100 {
      if flock(folder.number, LOCK_EX | LOCK_NB) == 0 { return folder }
      guard errno == EWOULDBLOCK || errno == EINTR else { return nil }
      usleep(1_000)
    }
    return nil
  }

  private static func newSocket(
    for path: String
  ) throws(OperationInspectorError) -> FileDescriptor {
    let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
    let number = socket(AF_UNIX, Int32(kind), 0)
    guard number >= 0 else { throw .system(path: path, code: errno) }
    return FileDescriptor(number)
  }

  /// Removes the file, unless it was replaced.
  func remove() {
    guard let status = Self.status(of: path) else { return }
    if file == [UInt64(status.st_dev), UInt64(status.st_ino)] { unlink(path) }
  }

  /// Accepts a peer, whose descriptor does not block; `nil` if there is none.
  func accept() throws(SystemError) -> FileDescriptor? {
    while true {
      let number = Glibc.accept(listener.number, nil, nil)
      if number >= 0 {
        _ = fcntl(number, F_SETFD, FD_CLOEXEC)
        _ = fcntl(number, F_SETFL, O_NONBLOCK)
        return FileDescriptor(number)
      }
      switch errno {
      case EINTR, ECONNABORTED: continue
      case EAGAIN: return nil
      default: throw SystemError()
      }
    }
  }

  /// Returns the user of the process that has connected.
  static func user(of peer: FileDescriptor) -> uid_t? {
    // A `ucred`: the process, the user and the group.
    var credentials: [UInt32] = [0, 0, 0]
    var length = socklen_t(12)
    let result = getsockopt(peer.number, SOL_SOCKET, SO_PEERCRED, &credentials, &length)
    return result == 0 && length == 12 ? credentials[1] : nil
  }
}

extension InspectorSocket {
  /// Returns `false` if there is a file.
  private static func bind(
    _ descriptor: FileDescriptor, to path: String
  ) throws(OperationInspectorError) -> Bool {
    let result = try withAddress(of: path) { Glibc.bind(descriptor.number, $0, $1) }
    if result != 0, errno != EADDRINUSE { throw .system(path: path, code: errno) }
    return result == 0
  }

  private static func withAddress(
    of path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) throws(OperationInspectorError) -> Int32 {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    // An empty path, or one that begins with a zero, is a socket without a file.
    guard !bytes.isEmpty, !bytes.contains(0) else { throw .system(path: path, code: EINVAL) }
    // Without the zero at the end.
    let limit = MemoryLayout.size(ofValue: address.sun_path) - 1
    guard bytes.count <= limit else { throw .pathTooLong(path: path, limit: limit) }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }

  private static func checkIsAbandoned(_ path: String) throws(OperationInspectorError) {
    guard let status = status(of: path), status.st_mode & S_IFMT == S_IFSOCK,
      status.st_uid == geteuid()
    else { throw .foreignFile(path: path) }
    let probe = try newSocket(for: path)
    // `EAGAIN` means that peers wait there already.
    let result = try withAddress(of: path) { connect(probe.number, $0, $1) }
    guard result != 0, errno == ECONNREFUSED else { throw .occupied(path: path) }
  }

  private static func status(of path: String) -> stat? {
    var status = stat()
    return lstat(path, &status) == 0 ? status : nil
  }

  /// Returns the private directory for sockets, and creates it if it is missing.
  static func directory(
    _ environment: [String: String] = ProcessInfo.processInfo.environment
  ) throws(OperationInspectorError) -> String {
    func directory(_ name: String) -> String? {
      environment[name].flatMap { $0.hasPrefix("/") ? $0 : nil }
    }
    let path =
      directory("XDG_RUNTIME_DIR").map { "\($0)/swift-operation" }
      ?? "\(directory("TMPDIR") ?? "/tmp")/swift-operation-\(geteuid())"
    if mkdir(path, 0o700) != 0, errno != EEXIST { throw .system(path: path, code: errno) }
    guard let status = status(of: path), status.st_mode & S_IFMT == S_IFDIR,
      status.st_uid == geteuid(), status.st_mode & 0o077 == 0
    else { throw .unsafeDirectory(path: path) }
    return path
  }
}
