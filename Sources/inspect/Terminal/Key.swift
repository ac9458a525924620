/// A key that was pressed.
enum Key: Equatable, Sendable {
  case character(Character)
  case up, down, left, right, pageUp, pageDown, home, end
  case enter, escape, backspace, tab, redraw
}

/// Decodes the bytes that a terminal sends into keys.
struct KeyDecoder: Sendable {
  /// The time after which the byte ESC is the key Escape, in seconds.
  static let escapeDelay = 0.03

  private var state = State.ground

  private enum State: Equatable {
    case ground
    /// After the byte ESC. It begins a sequence, or is the key Escape from a time on.
    case escape(at: Double)
    /// After `ESC [` or `ESC O`, with the parameters so far.
    case sequence([UInt8])
    /// In a character of several bytes, of which some are missing.
    case character([UInt8], missing: Int)
  }

  /// When the byte ESC is the key Escape, unless more bytes come before; `nil` without that byte.
  var escapeTime: Double? { if case .escape(let time) = state { time } else { nil } }

  /// Returns the keys that a byte completes.
  ///
  /// - Parameter time: When the byte was read, in seconds.
  mutating func feed(_ byte: UInt8, at time: Double) -> [Key] {
    switch state {
    case .ground: return begin(byte, time)
    case .escape:
      if byte == UInt8(ascii: "[") || byte == UInt8(ascii: "O") {
        state = .sequence([])
        return []
      }
      state = .ground
      return [.escape] + begin(byte, time)
    case .sequence(let parameters):
      // The console of Linux sends its function keys as `ESC [ [` and a letter.
      let isParameter = (0x20...0x3F).contains(byte) || byte == UInt8(ascii: "[")
      if isParameter, parameters.count < 16 {
        state = .sequence(parameters + [byte])
        return []
      }
      state = .ground
      return Self.key(of: byte, parameters).map { [$0] } ?? []
    case .character(let bytes, let missing):
      guard byte & 0xC0 == 0x80 else {
        state = .ground
        return begin(byte, time)
      }
      state = missing == 1 ? .ground : .character(bytes + [byte], missing: missing - 1)
      return missing == 1 ? Self.characters(bytes + [byte]) : []
    }
  }

  /// Returns the key Escape, if it was pressed long enough before a time, and nothing has followed.
  mutating func timeOut(at time: Double) -> [Key] {
    guard let escapeTime, time >= escapeTime else { return [] }
    state = .ground
    return [.escape]
  }

  private mutating func begin(_ byte: UInt8, _ time: Double) -> [Key] {
    switch byte {
    case 0x1B: state = .escape(at: time + Self.escapeDelay)
    case 0x0D, 0x0A: return [.enter]
    case 0x7F, 0x08: return [.backspace]
    case 0x09: return [.tab]
    case 0x0C: return [.redraw]
    case 0xC2...0xDF: state = .character([byte], missing: 1)
    case 0xE0...0xEF: state = .character([byte], missing: 2)
    case 0xF0...0xF4: state = .character([byte], missing: 3)
    case 0x20...0x7E: return [.character(Character(Unicode.Scalar(byte)))]
    default: break
    }
    return []
  }

  private static func characters(_ bytes: [UInt8]) -> [Key] {
    String(validating: bytes, as: UTF8.self).map { $0.map(Key.character) } ?? []
  }

  private static func key(of final: UInt8, _ parameters: [UInt8]) -> Key? {
    if parameters.contains(UInt8(ascii: "[")) { return nil }
    return switch final {
    case UInt8(ascii: "A"): .up
    case UInt8(ascii: "B"): .down
    case UInt8(ascii: "C"): .right
    case UInt8(ascii: "D"): .left
    case UInt8(ascii: "H"): .home
    case UInt8(ascii: "F"): .end
    case UInt8(ascii: "M"): .enter
    case UInt8(ascii: "~"):
      switch String(decoding: parameters.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self) {
      case "1", "7": .home
      case "4", "8": .end
      case "5": .pageUp
      case "6": .pageDown
      default: nil
      }
    default: nil
    }
  }
}
