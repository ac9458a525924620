import Testing

@testable import Operation

@Suite("NetlinkMachine") struct NetlinkMachineTests {
  typealias Wire = NetlinkFixtures
  typealias Output = NetlinkMachine.Output

  private static func request(_ kind: NetlinkMessage.Kind, _ sequence: UInt32) -> Output {
    Output(request: NetlinkMessage.request(kind, sequence: sequence))
  }

  /// The status after an answer with one link, of the index 2, and these routes.
  private func status(
    linkFlags: UInt32 = Wire.usable, routes: [UInt8]
  ) -> NetworkConnectionStatus? {
    var machine = NetlinkMachine()
    _ = machine.begin()
    _ = machine.receive(Wire.link(2, linkFlags, flags: Wire.answer, sequence: 1) + Wire.done(1))
    return machine.receive(routes + Wire.done(2)).status
  }

  /// A machine with a complete answer: a default route through a link of the index 2, which is up.
  private func listening() -> NetlinkMachine {
    var machine = NetlinkMachine()
    _ = machine.begin()
    _ = machine.receive(Wire.link(2, flags: Wire.answer, sequence: 1) + Wire.done(1))
    let output = machine.receive(
      Wire.route(through: [2], flags: Wire.answer, sequence: 2) + Wire.done(2))
    #expect(output == Output(status: .connected))
    return machine
  }

  @Test("The machine requests the links, then the routes, and reports the status") func order() {
    var machine = NetlinkMachine()
    #expect(machine.begin() == NetlinkMessage.request(.getLink, sequence: 1))
    #expect(machine.receive(Wire.link(2, flags: Wire.answer, sequence: 1)) == Output())
    #expect(machine.receive(Wire.done(1)) == Self.request(.getRoute, 2))
    #expect(
      machine.receive(Wire.route(through: [2], flags: Wire.answer, sequence: 2)) == Output())
    #expect(machine.receive(Wire.done(2)) == Output(status: .connected))
  }

  @Test("The requests of the machine have the layout of the kernel") func requests() {
    #expect(
      NetlinkMessage.request(.getLink, sequence: 7)
        == Wire.message(18, flags: 0x301, sequence: 7, [UInt8](repeating: 0, count: 16)))
    #expect(
      NetlinkMessage.request(.getRoute, sequence: 7)
        == Wire.message(26, flags: 0x301, sequence: 7, [UInt8](repeating: 0, count: 12)))
  }

  @Test("A default route through an interface that is up is a connection")
  func connected() {
    func route(
      through interfaces: [Int32] = [2], family: UInt8 = 2, table: UInt8 = 254,
      tableNumber: UInt32? = nil
    ) -> [UInt8] {
      Wire.route(
        through: interfaces, family: family, table: table, tableNumber: tableNumber,
        flags: Wire.answer, sequence: 2)
    }
    #expect(status(routes: route()) == .connected)
    #expect(status(routes: route(family: 10)) == .connected)
    #expect(status(routes: route(table: 252, tableNumber: 254)) == .connected)
    #expect(status(routes: route(through: [3]) + route()) == .connected)
    #expect(status(routes: route(through: [3, 2])) == .connected)
    // A route through a group of next hops need not name an interface.
    #expect(status(routes: route(through: [])) == .connected)
    #expect(status(linkFlags: Wire.usable | 0x1002, routes: route()) == .connected)
  }

  @Test("Without such a route, or such an interface, there is no connection")
  func disconnected() {
    func route(
      through interfaces: [Int32] = [2], family: UInt8 = 2, length: UInt8 = 0,
      table: UInt8 = 254, kind: UInt8 = 1, tableNumber: UInt32? = nil
    ) -> [UInt8] {
      Wire.route(
        through: interfaces, family: family, length: length, table: table, kind: kind,
        tableNumber: tableNumber, flags: Wire.answer, sequence: 2)
    }
    #expect(status(routes: []) == .disconnected)
    #expect(status(routes: route(length: 24)) == .disconnected)
    #expect(status(routes: route(table: 255)) == .disconnected)
    #expect(status(routes: route(tableNumber: 51820)) == .disconnected)
    #expect(status(routes: route(kind: 7)) == .disconnected)
    #expect(status(routes: route(family: 128)) == .disconnected)
    #expect(status(routes: route(through: [3])) == .disconnected)
    #expect(status(routes: route(through: [3, 4])) == .disconnected)
    for flags: UInt32 in [0, 0x1, 0x40, Wire.usable | 0x8] {
      #expect(status(linkFlags: flags, routes: route()) == .disconnected)
      #expect(status(linkFlags: flags, routes: route(through: [])) == .disconnected)
    }
  }

  @Test(
    "After a notification that can change the status, the machine requests everything again",
    arguments: [
      Wire.link(2, 0x1), Wire.link(2, 0), Wire.link(3), Wire.link(2, type: 17),
      Wire.route(through: [2]), Wire.route(through: [3], family: 10, type: 25),
      Wire.route(through: [], kind: 6), Wire.message(21, [2, 24, 0, 0, 2, 0, 0, 0]),
      Wire.message(4),
    ])
  func changesStatus(notification: [UInt8]) {
    var machine = listening()
    #expect(machine.receive(notification) == Self.request(.getLink, 3))
  }

  @Test(
    "Any other message is ignored, with any sequence number",
    arguments: [
      Wire.link(2), Wire.link(2, Wire.usable | 0x1000), Wire.link(2, sequence: 2),
      Wire.route(through: [2], length: 24), Wire.route(through: [2], table: 255, type: 25),
      Wire.message(20, [2, 24, 0, 0, 2, 0, 0, 0]), Wire.message(1), Wire.message(999),
      Wire.done(2), Wire.error(2), Wire.link(2, 0, flags: Wire.answer, sequence: 2),
    ])
  func isIgnored(notification: [UInt8]) {
    var machine = listening()
    #expect(machine.receive(notification) == Output())
  }

  @Test("After lost notifications, the machine reads all messages, and requests everything again")
  func overrun() {
    var machine = listening()
    machine.overrun()
    #expect(machine.receive(Wire.message(1)) == Output())
    #expect(machine.drained() == Self.request(.getLink, 3))
    #expect(machine.drained() == Output())
    machine.overrun()
    #expect(machine.drained() == Output())
    #expect(machine.receive(Wire.done(3)) == Self.request(.getRoute, 4))
    #expect(machine.receive(Wire.done(4)) == Self.request(.getLink, 5))
    #expect(machine.receive(Wire.done(5)) == Self.request(.getRoute, 6))
    #expect(machine.receive(Wire.done(6)) == Output(status: .disconnected))
    #expect(machine.drained() == Output())
  }

  @Test("An answer that a notification makes outdated is requested again, three times at most")
  func outdated() {
    var machine = NetlinkMachine()
    _ = machine.begin()
    for round: UInt32 in 0..<3 {
      let sequence = 2 * round + 1
      #expect(machine.receive(Wire.link(2, sequence: 99)) == Output())
      #expect(machine.receive(Wire.done(sequence)) == Self.request(.getRoute, sequence + 1))
      var expected = Self.request(.getLink, sequence + 2)
      if round == 2 { expected.status = .disconnected }
      #expect(machine.receive(Wire.done(sequence + 1)) == expected)
    }
  }

  @Test("An answer that the kernel marks as interrupted is requested three times at most")
  func interrupted() {
    var machine = NetlinkMachine()
    _ = machine.begin()
    for round: UInt32 in 0..<3 {
      let sequence = 2 * round + 1
      let link = Wire.link(2, flags: Wire.interrupted, sequence: sequence)
      _ = machine.receive(link + Wire.done(sequence))
      #expect(
        machine.receive(Wire.done(sequence + 1))
          == (round == 2
            ? Output(status: .disconnected) : Self.request(.getLink, sequence + 2)))
    }
    #expect(machine.receive(Wire.message(4)) == Self.request(.getLink, 7))
  }

  @Test("An error is followed by another request, and is a failure the third time") func errors() {
    var machine = NetlinkMachine()
    _ = machine.begin()
    #expect(machine.receive(Wire.error(1)) == Self.request(.getLink, 2))
    #expect(machine.receive(Wire.done(2)) == Self.request(.getRoute, 3))
    #expect(machine.receive(Wire.done(3, error: -105)) == Self.request(.getLink, 4))
    #expect(machine.receive(Wire.error(4)) == Output(hasFailed: true))
  }

  @Test("Answers to earlier requests are ignored") func earlier() {
    var machine = listening()
    machine.overrun()
    _ = machine.drained()
    #expect(machine.receive(Wire.done(2) + Wire.error(1) + Wire.done(4)) == Output())
    #expect(machine.receive(Wire.done(3)) == Self.request(.getRoute, 4))
  }

  @Test("The complete messages of a truncated datagram are read") func truncated() {
    let pieces = [
      Wire.link(2, flags: Wire.answer, sequence: 1), Wire.message(999, [1, 2, 3]), Wire.done(1),
    ]
    let datagram = pieces.flatMap(\.self)
    for length in 0...datagram.count {
      var machine = NetlinkMachine()
      _ = machine.begin()
      let output = machine.receive(Array(datagram.prefix(length)))
      #expect(output == (length == datagram.count ? Self.request(.getRoute, 2) : Output()))
    }
    let route = Wire.route(
      through: [2, 3], tableNumber: 254, flags: Wire.answer, sequence: 2)
    for length in 0..<route.count {
      #expect(status(routes: Array(route.prefix(length))) == nil || length == 0)
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
      var machine = listening()
      var message = Wire.message(4)
      message.replaceSubrange(0..<4, with: Wire.bytes(length))
      #expect(machine.receive(message) == Output())
    }
    for length: UInt16 in [0, 3, 9, .max] {
      var route = Wire.route(through: [2], flags: Wire.answer, sequence: 2)
      route.replaceSubrange(28..<30, with: Wire.bytes(length))
      // Nothing after it is read: neither another table nor the interface.
      #expect(status(routes: route) == .connected)
      #expect(status(linkFlags: 0, routes: route) == .disconnected)
    }
  }

  @Test("Random bytes are accepted") func random() {
    let kinds: [UInt16] = [2, 3, 16, 21, 24, 25]
    for _ in 0..<2000 {
      var machine = Bool.random() ? listening() : NetlinkMachine()
      _ = machine.begin()
      for _ in 0..<4 {
        var bytes = (0..<Int.random(in: 0...96)).map { _ in UInt8.random(in: 0...255) }
        // Half of the messages have a valid length, kind and sequence, so that they are read.
        if bytes.count >= 32, Bool.random() {
          bytes.replaceSubrange(0..<4, with: Wire.bytes(UInt32(bytes.count)))
          bytes.replaceSubrange(4..<6, with: Wire.bytes(kinds.randomElement() ?? 3))
          bytes.replaceSubrange(8..<12, with: Wire.bytes(UInt32.random(in: 0...4)))
          bytes[16] = Bool.random() ? 2 : 10
          bytes[17] = 0
        }
        _ = machine.receive(bytes)
      }
    }
  }
}
