/// One message of the kernel about its network, in the layout of `linux/netlink.h` and
/// `linux/rtnetlink.h`.
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

  /// A route to all addresses.
  struct DefaultRoute: Equatable {
    /// Whether the route forwards packets; some kinds of route reject them.
    let isUnicast: Bool
    /// The interfaces of the route; empty if the kernel does not name them.
    let interfaces: [Int32]
  }

  private static let headerLength = 16
  private static let answer: UInt16 = 0x2
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
  let sequence: UInt32

  private init?(_ content: NetlinkBytes) {
    guard let kind: UInt16 = content.number(at: 4), let flags: UInt16 = content.number(at: 6),
      let sequence: UInt32 = content.number(at: 8)
    else { return nil }
    self.content = content
    self.kind = Kind(rawValue: kind)
    self.flags = flags
    self.sequence = sequence
  }

  /// Returns the messages in one datagram.
  static func all(in datagram: [UInt8]) -> [NetlinkMessage] {
    NetlinkBytes(bytes: datagram[...])
      .pieces(from: 0, lengthAs: UInt32.self, header: headerLength)
      .compactMap(NetlinkMessage.init)
  }

  /// Returns a request for all links or all routes.
  static func request(_ kind: Kind, sequence: UInt32) -> [UInt8] {
    let payload = [UInt8](repeating: 0, count: kind == .getLink ? 16 : 12)
    func bytes(of number: some FixedWidthInteger) -> [UInt8] {
      withUnsafeBytes(of: number) { Array($0) }
    }
    return bytes(of: UInt32(headerLength + payload.count)) + bytes(of: kind.rawValue)
      + bytes(of: dumpRequest) + bytes(of: sequence) + bytes(of: 0 as UInt32) + payload
  }

  /// Whether the message is part of an answer. The others are notifications, which have the sequence
  /// of the request that made the change.
  var isAnswer: Bool { flags & Self.answer != 0 || kind == .done || kind == .error }

  /// Whether something changed while the kernel made the answer.
  var isInterrupted: Bool { isAnswer && flags & Self.interrupted != 0 }

  /// The error at the end of an answer; zero for none.
  var errorCode: Int32 { content.number(at: Self.headerLength) ?? 0 }

  /// The interface of the message, and whether it is up, has a carrier, and is not the loopback
  /// interface.
  var link: (index: Int32, isUsable: Bool)? {
    guard kind == .newLink, let index: Int32 = content.number(at: 20),
      let flags: UInt32 = content.number(at: 24)
    else { return nil }
    return (index, flags & (Self.up | Self.loopback | Self.running) == Self.up | Self.running)
  }

  /// The route of the message, if that is a default route of the main table.
  var defaultRoute: DefaultRoute? {
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
    return DefaultRoute(isUnicast: type == 1, interfaces: interfaces)
  }
}
