import Glibc

/// A netlink socket, which answers requests or receives notifications of the kernel.
struct NetlinkSocket: Sendable {
  /// The groups of notifications of the links, and of the addresses and routes of IPv4 and of IPv6.
  static let changes: UInt32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400
  /// The size of the largest datagram that the kernel sends.
  private static let capacity = 32768

  let descriptor: FileDescriptor

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

  /// Asks for the status on a socket that receives no notifications, and waits for the answer, for one second
  /// at most.
  func ask() throws(SystemError) -> NetworkConnectionStatus {
    // A hundred waits of 10 ms: a signal may end any of them early.
    var waits = 100
    return try NetlinkMessage.status { () throws(SystemError) in
      try dump(.getLink, &waits) + dump(.getRoute, &waits)
    }
  }

  /// Returns the messages of an answer that say something about the status.
  private func dump(
    _ kind: NetlinkMessage.Kind, _ waits: inout Int
  ) throws(SystemError) -> [NetlinkMessage] {
    let request = NetlinkMessage.request(kind)
    let count = send(descriptor.number, request, request.count, 0)
    guard count == request.count else { throw SystemError() }
    var answer: [NetlinkMessage] = []
    var poll = pollfd(fd: descriptor.number, events: Int16(POLLIN), revents: 0)
    while waits > 0 {
      let hasArrived = Glibc.poll(&poll, 1, 10) > 0
      if !hasArrived { waits -= 1 }
      guard hasArrived, let messages = try read() else { continue }
      answer += messages.filter { $0.canChangeStatus || $0.isInterrupted || $0.isError }
      if messages.contains(where: \.isEnd) { return answer }
    }
    throw SystemError(code: ETIMEDOUT)
  }

  /// Reads all notifications that have arrived. Returns whether the status may differ after them.
  ///
  /// The kernel drops notifications, without another error, until everything in the socket has been
  /// read. So only an answer that is requested after that is complete.
  func readNotifications() throws(SystemError) -> Bool {
    var canDiffer = false
    while true {
      do throws(SystemError) {
        guard let messages = try read() else { return canDiffer }
        canDiffer = canDiffer || messages.contains(where: \.canChangeStatus)
      } catch {
        guard error.code == ENOBUFS else { throw error }
        canDiffer = true
      }
    }
  }

  /// Reads one datagram; `nil` if there is none.
  private func read() throws(SystemError) -> [NetlinkMessage]? {
    var bytes = [UInt8](repeating: 0, count: Self.capacity)
    while true {
      let count = recv(descriptor.number, &bytes, bytes.count, 0)
      if count >= 0 { return NetlinkMessage.all(in: Array(bytes[..<count])) }
      if errno == EAGAIN { return nil }
      if errno != EINTR { throw SystemError() }
    }
  }
}
