import Glibc
import Synchronization

/// A netlink socket, which answers requests and receives notifications of the kernel.
///
/// The lock guards the machine. It is not held during a system call.
final class NetlinkSocket: Sendable {
  /// The groups of notifications of the links, and of the addresses and routes of IPv4 and of IPv6.
  static let changes: UInt32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400
  /// The size of the largest datagram that the kernel sends.
  private static let capacity = 32768

  let descriptor: FileDescriptor
  private let machine = Mutex(NetlinkMachine())

  /// Opens a socket that does not block; negative where that is not permitted.
  static func open() -> Int32 {
    socket(AF_NETLINK, Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
  }

  /// Takes ownership of a descriptor from ``open()``.
  ///
  /// - Parameter groups: The groups whose notifications the socket receives, as a bit mask.
  init(_ descriptor: Int32, groups: UInt32) throws(SystemError) {
    self.descriptor = FileDescriptor(descriptor)
    // A `sockaddr_nl`, which the module of the C library does not export.
    var address = sockaddr()
    address.sa_family = sa_family_t(AF_NETLINK)
    withUnsafeMutableBytes(of: &address) {
      $0.storeBytes(of: groups, toByteOffset: 8, as: UInt32.self)
    }
    guard descriptor >= 0, bind(descriptor, &address, 12) == 0 else { throw SystemError() }
  }

  /// Asks for the status, and waits for the answer, for one second at most.
  func ask() throws(SystemError) -> NetworkConnectionStatus {
    try send(machine.withLock { $0.begin() })
    var poll = pollfd(fd: descriptor.number, events: Int16(POLLIN), revents: 0)
    // A hundred waits of 10 ms: a signal may end any of them early.
    for _ in 0..<100 {
      while Glibc.poll(&poll, 1, 10) > 0 { if let status = try read() { return status } }
    }
    throw SystemError(code: ETIMEDOUT)
  }

  /// Reads datagrams until one of them completes a status; `nil` if everything that has arrived was
  /// read before.
  func read() throws(SystemError) -> NetworkConnectionStatus? {
    while let output = try receive() {
      if let request = output.request { try send(request) }
      if output.hasFailed { throw SystemError(code: EPROTO) }
      if let status = output.status { return status }
    }
    return nil
  }

  /// Reads one datagram, and returns what to do after it; `nil` if there is nothing to read and to do.
  private func receive() throws(SystemError) -> NetlinkMachine.Output? {
    var bytes = [UInt8](repeating: 0, count: Self.capacity)
    while true {
      let count = recv(descriptor.number, &bytes, bytes.count, 0)
      if count >= 0 { return machine.withLock { $0.receive(Array(bytes[..<count])) } }
      switch errno {
      case EINTR: continue
      case ENOBUFS: machine.withLock { $0.overrun() }
      case EAGAIN:
        let output = machine.withLock { $0.drained() }
        return output.request == nil ? nil : output
      default: throw SystemError()
      }
    }
  }

  private func send(_ bytes: [UInt8]) throws(SystemError) {
    let count = Glibc.send(descriptor.number, bytes, bytes.count, 0)
    guard count == bytes.count else { throw SystemError() }
  }
}
