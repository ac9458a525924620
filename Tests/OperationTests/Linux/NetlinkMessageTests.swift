import Testing

@testable import Operation

@Suite("NetlinkMessage") struct NetlinkMessageTests {
  typealias Wire = NetlinkFixtures
  typealias Status = NetworkConnectionStatus

  /// The status by an answer with one link, of the index 2, and these routes.
  private func status(linkFlags: UInt32 = Wire.usable, routes: [UInt8]) -> Status? {
    try? NetlinkMessage.status { NetlinkMessage.all(in: Wire.link(2, linkFlags) + routes) }
  }

  /// Whether the status may differ after a datagram.
  private func canChangeStatus(_ datagram: [UInt8]) -> Bool {
    NetlinkMessage.all(in: datagram).contains(where: \.canChangeStatus)
  }

  @Test("The requests have the layout of the kernel") func requests() {
    #expect(
      NetlinkMessage.request(.getLink)
        == Wire.message(18, flags: 0x301, [UInt8](repeating: 0, count: 16)))
    #expect(
      NetlinkMessage.request(.getRoute)
        == Wire.message(26, flags: 0x301, [UInt8](repeating: 0, count: 12)))
  }

  @Test("A default route through an interface that is up is a connection")
  func connected() {
    #expect(status(routes: Wire.route(through: [2])) == .connected)
    #expect(status(routes: Wire.route(through: [2], family: 10)) == .connected)
    #expect(status(routes: Wire.route(through: [2], table: 252, tableNumber: 254)) == .connected)
    #expect(status(routes: Wire.route(through: [3]) + Wire.route(through: [2])) == .connected)
    #expect(status(routes: Wire.route(through: [3, 2])) == .connected)
    // A route through a group of next hops need not name an interface.
    #expect(status(routes: Wire.route(through: [])) == .connected)
    #expect(
      status(linkFlags: Wire.usable | 0x1002, routes: Wire.route(through: [2])) == .connected)
  }

  @Test("Without such a route, or such an interface, there is no connection")
  func disconnected() {
    #expect(status(routes: []) == .disconnected)
    #expect(status(routes: Wire.route(through: [2], length: 24)) == .disconnected)
    #expect(status(routes: Wire.route(through: [2], table: 255)) == .disconnected)
    #expect(status(routes: Wire.route(through: [2], tableNumber: 51820)) == .disconnected)
    #expect(status(routes: Wire.route(through: [2], kind: 7)) == .disconnected)
    #expect(status(routes: Wire.route(through: [2], family: 128)) == .disconnected)
    #expect(status(routes: Wire.route(through: [3])) == .disconnected)
    #expect(status(routes: Wire.route(through: [3, 4])) == .disconnected)
    for flags: UInt32 in [0, 0x1, 0x40, Wire.usable | 0x8] {
      #expect(status(linkFlags: flags, routes: Wire.route(through: [2])) == .disconnected)
      #expect(status(linkFlags: flags, routes: Wire.route(through: [])) == .disconnected)
    }
  }

  @Test(
    "The status may differ after such a notification",
    arguments: [
      Wire.link(2, 0x1), Wire.link(2, 0), Wire.link(3), Wire.link(2, type: 17),
      Wire.route(through: [2]), Wire.route(through: [3], family: 10, type: 25),
      Wire.route(through: [], kind: 6), Wire.message(21, [2, 24, 0, 0, 2, 0, 0, 0]),
      Wire.message(4), Wire.message(1) + Wire.message(4),
    ])
  func changesStatus(notification: [UInt8]) { #expect(canChangeStatus(notification)) }

  @Test(
    "Any other message changes nothing",
    arguments: [
      Wire.route(through: [2], length: 24), Wire.route(through: [2], table: 255, type: 25),
      Wire.message(20, [2, 24, 0, 0, 2, 0, 0, 0]), Wire.message(1), Wire.message(999),
      Wire.done(2), Wire.error(2),
    ])
  func isIgnored(notification: [UInt8]) { #expect(!canChangeStatus(notification)) }

  @Test("An answer ends with its last message, or with an error") func ends() {
    func ends(_ datagram: [UInt8]) -> [Bool] { NetlinkMessage.all(in: datagram).map(\.isEnd) }
    func errors(_ datagram: [UInt8]) -> [Bool] { NetlinkMessage.all(in: datagram).map(\.isError) }
    #expect(ends(Wire.link(2) + Wire.done(1)) == [false, true])
    #expect(ends(Wire.error(1)) == [true])
    #expect(errors(Wire.link(2) + Wire.done(1)) == [false, false])
    #expect(errors(Wire.error(1)) == [true] && errors(Wire.done(1, error: -105)) == [true])
  }

  @Test(
    "A disturbed answer is asked for three times at most",
    arguments: [
      [Wire.link(2, flags: Wire.interrupted)],
      [Wire.link(2), Wire.done(1, flags: Wire.interrupted)], [Wire.error(1)],
      [Wire.link(2), Wire.done(1, error: -105)],
    ])
  func disturbed(pieces: [[UInt8]]) throws {
    let disturbed = NetlinkMessage.all(in: pieces.flatMap(\.self))
    let complete = NetlinkMessage.all(in: Wire.link(2) + Wire.route(through: [2]) + Wire.done(1))
    for count in 0...2 {
      var asked = 0
      let status = try NetlinkMessage.status {
        asked += 1
        return asked > count ? complete : disturbed
      }
      #expect(status == .connected && asked == count + 1)
    }
    var asked = 0
    let last = try? NetlinkMessage.status {
      asked += 1
      return disturbed
    }
    #expect(asked == 3)
    // A third answer that is not complete is accepted, and an error is a failure.
    #expect(last == (disturbed.contains(where: \.isError) ? nil : .disconnected))
  }

  @Test("The complete messages of a truncated datagram are read") func truncated() {
    let pieces = [Wire.link(2), Wire.message(999, [1, 2, 3]), Wire.done(1)]
    let datagram = pieces.flatMap(\.self)
    for length in 0...datagram.count {
      let messages = NetlinkMessage.all(in: Array(datagram.prefix(length)))
      #expect(messages.contains(where: \.isEnd) == (length == datagram.count))
    }
    let route = Wire.route(through: [2, 3], tableNumber: 254)
    for length in 0..<route.count {
      #expect(status(routes: Array(route.prefix(length))) == .disconnected)
      // A message whose own length ends in the middle of an attribute.
      var short = Array(route.prefix(length))
      guard length >= 16 else { continue }
      short.replaceSubrange(0..<4, with: Wire.bytes(UInt32(length)))
      #expect(
        status(routes: Wire.padded(short)) == (length < 28 ? .disconnected : .connected))
    }
  }

  @Test("Nothing is read after an invalid length") func invalidLengths() {
    for length: UInt32 in [0, 1, 15, 17, 1000, .max] {
      var message = Wire.message(4)
      message.replaceSubrange(0..<4, with: Wire.bytes(length))
      #expect(!canChangeStatus(message))
    }
    for length: UInt16 in [0, 3, 9, .max] {
      var route = Wire.route(through: [2])
      route.replaceSubrange(28..<30, with: Wire.bytes(length))
      // Nothing after it is read: neither another table nor the interface.
      #expect(status(routes: route) == .connected)
      #expect(status(linkFlags: 0, routes: route) == .disconnected)
    }
  }

  @Test("Random bytes are accepted") func random() {
    let kinds: [UInt16] = [2, 3, 16, 21, 24, 25]
    for _ in 0..<8000 {
      var bytes = (0..<Int.random(in: 0...96)).map { _ in UInt8.random(in: 0...255) }
      // Half of the messages have a valid length and kind, so that they are read.
      if bytes.count >= 32, Bool.random() {
        bytes.replaceSubrange(0..<4, with: Wire.bytes(UInt32(bytes.count)))
        bytes.replaceSubrange(4..<6, with: Wire.bytes(kinds.randomElement() ?? 3))
        bytes[16] = Bool.random() ? 2 : 10
        bytes[17] = 0
      }
      _ = canChangeStatus(bytes)
      _ = status(routes: bytes)
    }
  }
}
