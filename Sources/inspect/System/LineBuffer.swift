/// Divides a stream of bytes into lines.
struct LineBuffer: Sendable {
  /// The longest line that is accepted, in bytes.
  let limit: Int
  private var bytes: [UInt8] = []
  /// Where the next line begins, and up to where there is no newline.
  private var begin = 0
  private var searched = 0

  init(limit: Int = 256 << 20) { self.limit = limit }

  /// Whether a line is longer than the limit.
  var isOverLimit: Bool { bytes.count - begin > limit }

  mutating func append(_ more: [UInt8]) {
    if begin > 0 {
      bytes.removeFirst(begin)
      searched -= begin
      begin = 0
    }
    bytes += more
  }

  /// Returns the next complete line, without its newline.
  mutating func next() -> ArraySlice<UInt8>? {
    guard let end = bytes[searched...].firstIndex(of: UInt8(ascii: "\n")) else {
      searched = bytes.count
      return nil
    }
    defer {
      begin = end + 1
      searched = begin
    }
    return bytes[begin..<end]
  }
}
