import Glibc
import Synchronization

/// A socket that the kernel tells about its network, closed when the last reference goes away.
///
/// The lock guards the machine, and is not held in a system call.
final class NetlinkSocket: Sendable {
  /// The kinds of notification, as bits.
  struct Groups: OptionSet {
    let rawValue: UInt32

    /// The links, and the addresses and routes of IPv4 and of IPv6.
    static let changes = Groups(rawValue: 0x1 | 0x10 | 0x40 | 0x100 | 0x400)
  }

  enum Reading {
    /// Nothing more is there now.
    case nothing
    case status(NetworkConnectionStatus)
    case failed
  }

  /// Long enough for what the kernel packs into one datagram.
  private static let capacity = 32768

  let descriptor: Int32
  private let machine = Mutex(NetlinkMachine())

  /// Opens a socket that does not block; negative where that is not permitted.
  static func open() -> Int32 {
    socket(
      AF_NETLINK, Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
  }

  /// Takes over a descriptor from ``open()``.
  init?(_ descriptor: Int32, groups: Groups) {
    self.descriptor = descriptor
    // A `sockaddr_nl`, which the module of the C library does not know.
    var address = sockaddr()
    address.sa_family = sa_family_t(AF_NETLINK)
    withUnsafeMutableBytes(of: &address) {
      $0.storeBytes(of: groups.rawValue, toByteOffset: 8, as: UInt32.self)
    }
    guard descriptor >= 0, bind(descriptor, &address, 12) == 0 else { return nil }
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
  }

  /// Asks for the status, and waits for the answer; `nil` where none comes within a second.
  func ask() -> NetworkConnectionStatus? {
    guard send(machine.withLock { $0.begin() }) else { return nil }
    var waitsLeft = 100
    while waitsLeft > 0 {
      switch read() {
      case .status(let status): return status
      case .failed: return nil
      case .nothing:
        var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        if Glibc.poll(&poll, 1, 10) <= 0 { waitsLeft -= 1 }
      }
    }
    return nil
  }

  /// Takes one datagram after the other, until one of them completes a status.
  func read() -> Reading {
    while true {
      let output: NetlinkMachine.Output
      switch receive() {
      case .success(let bytes): output = machine.withLock { $0.receive(bytes) }
      case .failure(let error) where error.code == ENOBUFS:
        machine.withLock { $0.overrun() }
        continue
      case .failure(let error):
        guard error.code == EAGAIN else { return .failed }
        output = machine.withLock { $0.drained() }
        if output.request == nil { return .nothing }
      }
      if let request = output.request, !send(request) { return .failed }
      if output.hasFailed { return .failed }
      if let status = output.status { return .status(status) }
    }
  }

  private struct Failure: Error {
    let code: Int32
  }

  private func receive() -> Result<[UInt8], Failure> {
    var failure: Failure?
    let bytes = [UInt8](unsafeUninitializedCapacity: Self.capacity) { buffer, count in
      var result = -1
      repeat {
        result = recv(descriptor, buffer.baseAddress, buffer.count, 0)
      } while result < 0 && errno == EINTR
      if result < 0 { failure = Failure(code: errno) }
      count = max(result, 0)
    }
    return failure.map { .failure($0) } ?? .success(bytes)
  }

  private func send(_ bytes: [UInt8]) -> Bool {
    Glibc.send(descriptor, bytes, bytes.count, 0) == bytes.count
  }
}
