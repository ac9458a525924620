/// Bytes from the kernel. A read past their end returns `nil`.
struct NetlinkBytes: Sendable {
  let bytes: ArraySlice<UInt8>

  /// Returns the number at an offset, in the byte order of the machine.
  func number<Number: FixedWidthInteger>(
    at offset: Int, as type: Number.Type = Number.self
  ) -> Number? {
    guard offset + MemoryLayout<Number>.size <= bytes.count else { return nil }
    let number = bytes.dropFirst(offset).prefix(MemoryLayout<Number>.size)
    return Number(bigEndian: number.reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) })
  }

  /// Returns the pieces from an offset on, each of which begins with its length, up to the first
  /// invalid length.
  ///
  /// - Parameter header: The least number of bytes in a piece.
  func pieces<Length: FixedWidthInteger>(
    from offset: Int, lengthAs type: Length.Type, header: Int
  ) -> [NetlinkBytes] {
    var pieces: [NetlinkBytes] = []
    var rest = NetlinkBytes(bytes: bytes.dropFirst(offset))
    while let length = rest.number(at: 0, as: type).map({ Int(clamping: $0) }),
      length >= header, length <= rest.bytes.count
    {
      pieces.append(NetlinkBytes(bytes: rest.bytes.prefix(length)))
      // Each piece begins at a multiple of four.
      rest = NetlinkBytes(bytes: rest.bytes.dropFirst((length + 3) & ~3))
    }
    return pieces
  }
}
