/// Messages in the layout of the kernel.
enum NetlinkFixtures {
  static let answer: UInt16 = 0x2
  static let interrupted: UInt16 = 0x12
  /// Up, with a carrier.
  static let usable: UInt32 = 0x41

  static func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: number) { Array($0) }
  }

  static func padded(_ bytes: [UInt8]) -> [UInt8] {
    bytes + [UInt8](repeating: 0, count: (4 - bytes.count % 4) % 4)
  }

  static func message(
    _ type: UInt16, flags: UInt16 = 0, sequence: UInt32 = 0, _ payload: [UInt8] = []
  ) -> [UInt8] {
    let header =
      bytes(UInt32(16 + payload.count)) + bytes(type) + bytes(flags) + bytes(sequence)
      + bytes(0 as UInt32)
    return padded(header + payload)
  }

  static func attribute(_ type: UInt16, _ payload: [UInt8]) -> [UInt8] {
    padded(bytes(UInt16(4 + payload.count)) + bytes(type) + payload)
  }

  static func linkPayload(_ index: Int32, flags: UInt32 = 0, change: UInt32 = 0) -> [UInt8] {
    [0, 0, 0, 0] + bytes(index) + bytes(flags) + bytes(change)
  }

  static func link(
    _ index: Int32, _ linkFlags: UInt32 = usable, type: UInt16 = 16, flags: UInt16 = 0,
    sequence: UInt32 = 0
  ) -> [UInt8] {
    // With a name that needs padding.
    message(
      type, flags: flags, sequence: sequence,
      linkPayload(index, flags: linkFlags) + attribute(3, [118, 48, 0]))
  }

  static func route(
    through interfaces: [Int32], family: UInt8 = 2, length: UInt8 = 0, table: UInt8 = 254,
    kind: UInt8 = 1, tableNumber: UInt32? = nil, type: UInt16 = 24, flags: UInt16 = 0,
    sequence: UInt32 = 0
  ) -> [UInt8] {
    var payload: [UInt8] = [family, length, 0, 0, table, 4, 0, kind] + bytes(0 as UInt32)
    if let tableNumber { payload += attribute(15, bytes(tableNumber)) }
    payload += attribute(5, [10, 9, 0, 2])
    if interfaces.count == 1 { payload += attribute(4, bytes(interfaces[0])) }
    if interfaces.count > 1 {
      let hops = interfaces.map { interface -> [UInt8] in
        let gateway = attribute(5, [10, 9, 0, 2])
        return bytes(UInt16(8 + gateway.count)) + [0, 0] + bytes(interface) + gateway
      }
      payload += attribute(9, hops.flatMap(\.self))
    }
    return message(type, flags: flags, sequence: sequence, payload)
  }

  static func done(_ sequence: UInt32, flags: UInt16 = answer, error: Int32 = 0) -> [UInt8] {
    message(3, flags: flags, sequence: sequence, bytes(error))
  }

  static func error(_ sequence: UInt32, code: Int32 = -16) -> [UInt8] {
    message(2, sequence: sequence, bytes(code) + [UInt8](repeating: 0, count: 16))
  }
}
