import Glibc

/// One message of the kernel about its network, in the layout of `linux/netlink.h` and
/// `linux/rtnetlink.h`: a part of an answer, or a notification.
///
/// A notification is only a hint. The kernel removes and replaces some routes without one, such as
/// the IPv4 routes through an interface that goes down or loses its address. So a copy that applies
/// the notifications becomes wrong.
struct NetlinkMessage: Sendable {
  enum Kind: UInt16 {
    case error = 2
    case done = 3
    case overrun = 4
    case newLink = 16
    case deletedLink = 17
    case getLink = 18
    case deletedAddress = 21
    case newRoute = 24
    case deletedRoute = 25
    case getRoute = 26
  }

  private static let interrupted: UInt16 = 0x10
  private static let dumpRequest: UInt16 = 0x301
  private static let mainTable: UInt32 = 254
  private static let up: UInt32 = 0x1
  private static let loopback: UInt32 = 0x8
  private static let running: UInt32 = 0x40

  private let content: NetlinkBytes
  private let flags: UInt16
  /// The kind; `nil` for one that the library does not use.
  let kind: Kind?

  private init?(_ content: NetlinkBytes) {
    guard let kind: UInt16 = content.number(at: 4), let flags: UInt16 = content.number(at: 6)
    else { return nil }
    self.content = content
    self.kind = Kind(rawValue: kind)
    self.flags = flags
  }

  /// Returns the messages in one datagram.
  static func all(in datagram: [UInt8]) -> [NetlinkMessage] {
    NetlinkBytes(bytes: datagram[...])
      .pieces(from: 0, lengthAs: UInt32.self, header: 16)
      .compactMap(NetlinkMessage.init)
  }

  /// Returns a request for all links or all routes.
  static func request(_ kind: Kind) -> [UInt8] {
    // The sequence and the port of the header, and what the answer is not limited to.
    let rest = [UInt8](repeating: 0, count: kind == .getLink ? 24 : 20)
    func bytes(of number: some FixedWidthInteger) -> [UInt8] {
      withUnsafeBytes(of: number) { Array($0) }
    }
    return bytes(of: UInt32(8 + rest.count)) + bytes(of: kind.rawValue) + bytes(of: dumpRequest)
      + rest
  }

  /// Whether the message is the last one of an answer.
  var isEnd: Bool { kind == .done || kind == .error }

  /// Whether the answer that the message ends is an error.
  var isError: Bool {
    kind == .error || kind == .done && content.number(at: 16, as: Int32.self) ?? 0 != 0
  }

  /// Whether something changed while the kernel made the answer.
  var isInterrupted: Bool { flags & Self.interrupted != 0 }

  /// Whether the status may differ after a notification.
  var canChangeStatus: Bool {
    switch kind {
    case .newRoute, .deletedRoute: defaultRoute != nil
    // A new address is not among them: a default route that follows it has its own notification.
    case .newLink, .deletedLink, .deletedAddress, .overrun: true
    default: false
    }
  }

  /// The interface of the message, and whether it is up, has a carrier, and is not the loopback
  /// interface.
  var link: (index: Int32, isUsable: Bool)? {
    guard kind == .newLink, let index: Int32 = content.number(at: 20),
      let flags: UInt32 = content.number(at: 24)
    else { return nil }
    return (index, flags & (Self.up | Self.loopback | Self.running) == Self.up | Self.running)
  }

  /// The route of the message, if that is a default route of the main table: whether it forwards packets, as
  /// some kinds of route reject them, and its interfaces; none if the kernel does not name them.
  var defaultRoute: (isUnicast: Bool, interfaces: [Int32])? {
    // Family AF_INET or AF_INET6, and a destination of no bits.
    guard kind == .newRoute || kind == .deletedRoute,
      let family: UInt8 = content.number(at: 16), [2, 10].contains(family),
      content.number(at: 17, as: UInt8.self) == 0,
      let table: UInt8 = content.number(at: 20), let type: UInt8 = content.number(at: 23),
      content.number(at: 24, as: UInt32.self) != nil
    else { return nil }
    var tableNumber = UInt32(table)
    var interfaces: [Int32] = []
    for attribute in content.pieces(from: 28, lengthAs: UInt16.self, header: 4) {
      switch attribute.number(at: 2, as: UInt16.self) {
      case 4:  // RTA_OIF
        if let interface: Int32 = attribute.number(at: 4) { interfaces.append(interface) }
      case 9:  // RTA_MULTIPATH
        interfaces += attribute.pieces(from: 4, lengthAs: UInt16.self, header: 8)
          .compactMap { $0.number(at: 4, as: Int32.self) }
      case 15:  // RTA_TABLE
        tableNumber = attribute.number(at: 4) ?? tableNumber
      default: break
      }
    }
    guard tableNumber == Self.mainTable else { return nil }
    // RTN_UNICAST is 1.
    return (type == 1, interfaces)
  }

  /// Returns the status by the messages of an answer, with the links and the routes. One that is disturbed is
  /// asked for again; the third one is accepted, unless it is an error.
  static func status(
    asking: () throws(SystemError) -> [NetlinkMessage]
  ) throws(SystemError) -> NetworkConnectionStatus {
    var answer: [NetlinkMessage] = []
    for _ in 0..<3 {
      answer = try asking()
      if !answer.contains(where: { $0.isInterrupted || $0.isError }) { break }
    }
    if answer.contains(where: \.isError) { throw SystemError(code: EPROTO) }
    let usable = Set(answer.compactMap(\.link).filter(\.isUsable).map(\.index))
    let isConnected = answer.compactMap(\.defaultRoute).contains { route in
      route.isUnicast
        && !usable.isDisjoint(with: route.interfaces.isEmpty ? Array(usable) : route.interfaces)
    }
    return isConnected ? .connected : .disconnected
  }
}
