/// Splits the bytes from a peer into lines.
///
/// It stores at most one line, and that only up to a limit. After a longer one it takes in nothing.
struct InspectorLines: Sendable {
  /// The number of bytes in the longest line.
  let limit: Int
  private(set) var isOverLimit = false
  /// The beginning of a line whose end has not come.
  private var rest: [UInt8] = []

  init(limit: Int = 1 << 20) { self.limit = limit }

  /// Takes in bytes, and returns the lines that they complete, without their ends and without empty ones.
  mutating func append(_ bytes: some Collection<UInt8>) -> [[UInt8]] {
    var lines: [[UInt8]] = []
    for byte in bytes where !isOverLimit {
      if byte != UInt8(ascii: "\n") {
        rest.append(byte)
        isOverLimit = rest.count > limit
      } else if !rest.isEmpty {
        lines.append(rest)
        rest = []
      }
    }
    if isOverLimit { rest = [] }
    return lines
  }
}
