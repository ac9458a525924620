import FoundationEssentials
import Glibc

/// The bytes that a peer has not taken yet.
struct InspectorOutput: Sendable {
  private var bytes: [UInt8] = []
  private var written = 0

  var isEmpty: Bool { written == bytes.count }

  mutating func append(_ message: some Encodable) {
    // No message has a number that JSON cannot contain, except for a date out of all range.
    let encoder = JSONEncoder()
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    encoder.outputFormatting = .withoutEscapingSlashes
    guard let encoded = try? encoder.encode(message) else { return }
    bytes += encoded
    bytes.append(UInt8(ascii: "\n"))
  }

  /// Writes as much as a descriptor takes without blocking. Returns `false` if its peer is gone.
  mutating func write(to descriptor: FileDescriptor) -> Bool {
    while !isEmpty {
      let count = bytes[written...].withUnsafeBytes {
        send(descriptor.number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count < 0, errno == EINTR { continue }
      if count < 0 { return errno == EAGAIN }
      written += count
    }
    (bytes, written) = ([], 0)
    return true
  }
}
