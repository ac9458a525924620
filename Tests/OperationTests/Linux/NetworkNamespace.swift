import Dispatch
import Foundation
import Glibc
import Synchronization

@testable import Operation

/// A new network namespace, which is empty, and one thread in it.
///
/// Sockets that are made on this thread belong to the namespace, and can be read on any thread.
/// The namespace ends with the thread and the sockets.
final class NetworkNamespace: Sendable {
  typealias Wire = NetlinkFixtures

  /// The error of a request that the kernel refuses, with its `errno`.
  struct Refusal: Error {
    let code: Int32
  }

  /// Whether the machine permits namespaces; prints once if it does not.
  static let isPermitted: Bool = {
    do {
      let namespace = try NetworkNamespace()
      try namespace.makePair()
      try namespace.removePair()
      return true
    } catch {
      print("network namespaces, or veth pairs in them, are not permitted here: \(error)")
      return false
    }
  }()

  /// The interface of the routes, and its peer.
  static let interface: Int32 = 101
  static let peer: Int32 = 102
  /// `CLONE_NEWNET`.
  private static let newNetwork: Int32 = 0x4000_0000

  private let jobs = Jobs()

  init() throws {
    let isReady = Monitor<Int32?>(nil)
    let semaphore = DispatchSemaphore(value: 0)
    Thread.detachNewThread { [jobs] in
      isReady.update { $0 = Self.unshareNetwork() }
      semaphore.signal()
      jobs.run()
    }
    semaphore.wait()
    if let code = isReady.value, code != 0 {
      jobs.end()
      throw Refusal(code: code)
    }
  }

  deinit { jobs.end() }

  /// Calls `body` on the thread of the namespace, and waits for it.
  func perform<Output: Sendable>(_ body: @escaping @Sendable () -> Output) -> Output {
    let output = Mutex<Output?>(nil)
    let semaphore = DispatchSemaphore(value: 0)
    jobs.add {
      let made = body()
      output.withLock { $0 = made }
      semaphore.signal()
    }
    semaphore.wait()
    guard let made = output.withLock({ $0 }) else { fatalError("a job was not done") }
    return made
  }

  /// Moves the thread into a new namespace. `unshare` is not in the module of the C library.
  private static func unshareNetwork() -> Int32 {
    typealias Unshare = @convention(c) (Int32) -> Int32
    guard let symbol = dlsym(nil, "unshare") else { return ENOSYS }
    return unsafeBitCast(symbol, to: Unshare.self)(newNetwork) == 0 ? 0 : errno
  }
}

/// The sockets that were made, and the number of open ones.
final class SocketLedger: Sendable {
  private let made = Monitor<[ino_t]>([])

  /// The number of sockets that were recorded.
  var madeCount: Int { made.value.count }

  /// The number of recorded sockets that the process has open.
  var openCount: Int {
    let made = Set(made.value)
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    return names.compactMap { Int32($0).flatMap(Self.socket) }.filter(made.contains).count
  }

  func record(_ descriptor: Int32) -> Int32 {
    if let socket = Self.socket(of: descriptor) { made.update { $0.append(socket) } }
    return descriptor
  }

  /// The number that identifies a socket, unlike its descriptor, which is reused.
  private static func socket(of descriptor: Int32) -> ino_t? {
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return nil }
    return status.st_ino
  }
}

/// The jobs of one thread, in their order.
private final class Jobs: Sendable {
  private let queue = Mutex<(jobs: [@Sendable () -> Void], isOver: Bool)>(([], false))
  private let count = DispatchSemaphore(value: 0)

  func add(_ job: @escaping @Sendable () -> Void) {
    queue.withLock { $0.jobs.append(job) }
    count.signal()
  }

  func end() {
    queue.withLock { $0.isOver = true }
    count.signal()
  }

  func run() {
    while true {
      count.wait()
      let job = queue.withLock { $0.jobs.isEmpty ? nil : $0.jobs.removeFirst() }
      guard let job else { return }
      job()
    }
  }
}

extension NetworkNamespace {
  private static let acknowledged: UInt16 = 0x5
  private static let created: UInt16 = 0x405

  /// Makes two interfaces, joined by a cable and both down.
  func makePair() throws {
    let peer = Wire.linkPayload(Self.peer) + Wire.attribute(3, Array("peer\0".utf8))
    let kind = Wire.attribute(1, Array("veth".utf8))
    try request(
      16, Self.created | 0x200,
      Wire.linkPayload(Self.interface) + Wire.attribute(3, Array("test\0".utf8))
        + Wire.attribute(18, kind + Wire.attribute(2, Wire.attribute(1, peer))))
  }

  func removePair() throws {
    try request(17, Self.acknowledged, Wire.linkPayload(Self.interface))
  }

  func set(_ interface: Int32, up: Bool) throws {
    try request(
      16, Self.acknowledged, Wire.linkPayload(interface, flags: up ? 1 : 0, change: 1))
  }

  /// Adds or removes the address `10.9.0.1/24` of the interface.
  func setAddress(_ isPresent: Bool) throws {
    try request(
      isPresent ? 20 : 21, isPresent ? Self.created : Self.acknowledged,
      [2, 24, 0, 0] + Wire.bytes(Self.interface) + Wire.attribute(2, [10, 9, 0, 1])
        + Wire.attribute(1, [10, 9, 0, 1]))
  }

  /// Adds or removes a default route through the interface, by way of `10.9.0.2` in IPv4.
  func setDefaultRoute(_ isPresent: Bool, family: UInt8 = 2) throws {
    var payload: [UInt8] = [family, 0, 0, 0, 254, 4, 0, 1] + Wire.bytes(0 as UInt32)
    if family == 2 { payload += Wire.attribute(5, [10, 9, 0, 2]) }
    payload += Wire.attribute(4, Wire.bytes(Self.interface))
    try request(isPresent ? 24 : 25, isPresent ? Self.created : Self.acknowledged, payload)
  }

  /// Sends one request, and waits for its acknowledgement.
  private func request(_ type: UInt16, _ flags: UInt16, _ payload: [UInt8]) throws {
    let message = Wire.message(type, flags: flags, sequence: 1, payload)
    let code = perform { () -> Int32 in
      let descriptor = socket(AF_NETLINK, Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue), 0)
      guard descriptor >= 0 else { return errno }
      defer { close(descriptor) }
      var answer = [UInt8](repeating: 0, count: 4096)
      guard send(descriptor, message, message.count, 0) == message.count,
        recv(descriptor, &answer, answer.count, 0) >= 20
      else { return errno }
      return -(NetlinkBytes(bytes: answer[...]).number(at: 16) ?? -EIO)
    }
    if code != 0 { throw Refusal(code: code) }
  }
}
