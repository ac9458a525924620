/// Bytes from the kernel; where there are none, there is nothing to read.
struct NetlinkBytes: Sendable {
  let bytes: ArraySlice<UInt8>

  /// The number at an offset, in the byte order of the machine, if all of it is there.
  func number<Number: FixedWidthInteger>(
    at offset: Int, as type: Number.Type = Number.self
  ) -> Number? {
    guard offset + MemoryLayout<Number>.size <= bytes.count else { return nil }
    return bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: type) }
  }

  /// The pieces from an offset on that each begin with their length, up to the first broken one.
  ///
  /// - Parameter header: How many bytes a piece has at least.
  func pieces<Length: FixedWidthInteger>(
    from offset: Int, lengthAs type: Length.Type, header: Int
  ) -> [NetlinkBytes] {
    var pieces: [NetlinkBytes] = []
    var rest = NetlinkBytes(bytes: bytes.dropFirst(offset))
    while let length = rest.number(at: 0, as: type).map({ Int(clamping: $0) }),
      length >= header, length <= rest.bytes.count
    {
      pieces.append(NetlinkBytes(bytes: rest.bytes.prefix(length)))
      // Each begins at a multiple of four.
      rest = NetlinkBytes(bytes: rest.bytes.dropFirst((length + 3) & ~3))
    }
    return pieces
  }
}

/// One message of the kernel about its network; `linux/netlink.h` and `linux/rtnetlink.h` say what
/// lies where.
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

  /// A route to everywhere.
  struct DefaultRoute: Equatable {
    /// Whether it leads anywhere; there are routes that refuse.
    let isUnicast: Bool
    /// The interfaces that it leads through; empty where the kernel does not say.
    let interfaces: [Int32]
  }

  private static let headerLength = 16
  private static let answer: UInt16 = 0x2
  private static let interrupted: UInt16 = 0x10
  private static let dumpRequest: UInt16 = 0x301
  private static let mainTable: UInt32 = 254

  private let content: NetlinkBytes
  private let flags: UInt16
  /// Nothing where it is a kind that does not matter.
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

  /// The messages in one datagram.
  static func all(in datagram: [UInt8]) -> [NetlinkMessage] {
    NetlinkBytes(bytes: datagram[...])
      .pieces(from: 0, lengthAs: UInt32.self, header: headerLength)
      .compactMap(NetlinkMessage.init)
  }

  /// Asks for all links, or all routes.
  static func request(_ kind: Kind, sequence: UInt32) -> [UInt8] {
    let payload = [UInt8](repeating: 0, count: kind == .getLink ? 16 : 12)
    func bytes(of number: some FixedWidthInteger) -> [UInt8] {
      withUnsafeBytes(of: number) { Array($0) }
    }
    return bytes(of: UInt32(headerLength + payload.count)) + bytes(of: kind.rawValue)
      + bytes(of: dumpRequest) + bytes(of: sequence) + bytes(of: 0 as UInt32) + payload
  }

  /// Whether it is part of an answer, and not a notification, whose sequence is that of whoever
  /// made the change.
  var isAnswer: Bool { flags & Self.answer != 0 || kind == .done || kind == .error }

  /// Whether something changed while the answer was made.
  var isInterrupted: Bool { isAnswer && flags & Self.interrupted != 0 }

  /// What went wrong, at the end of an answer; zero is nothing.
  var errorCode: Int32 { content.number(at: Self.headerLength) ?? 0 }

  /// The interface that it is about, and what is said of it.
  var link: (index: Int32, flags: UInt32)? {
    guard kind == .newLink, let index: Int32 = content.number(at: 20),
      let flags: UInt32 = content.number(at: 24)
    else { return nil }
    return (index, flags)
  }

  /// The default route of the main table that it is about.
  var defaultRoute: DefaultRoute? {
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
      case 4: interfaces += [attribute.number(at: 4, as: Int32.self)].compactMap(\.self)
      case 9:
        interfaces += attribute.pieces(from: 4, lengthAs: UInt16.self, header: 8)
          .compactMap { $0.number(at: 4, as: Int32.self) }
      case 15: tableNumber = attribute.number(at: 4) ?? tableNumber
      default: break
      }
    }
    guard tableNumber == Self.mainTable else { return nil }
    return DefaultRoute(isUnicast: type == 1, interfaces: interfaces)
  }
}
