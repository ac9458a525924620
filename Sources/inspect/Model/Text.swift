extension String {
  /// The text without characters that would command the terminal. A program may send anything.
  var printable: String {
    guard unicodeScalars.contains(where: \.isUnprintable) else { return self }
    return String(
      String.UnicodeScalarView(unicodeScalars.map { $0.isUnprintable ? " " : $0 }))
  }

  /// The number of columns that the text takes in a terminal.
  var columns: Int {
    if utf8.allSatisfy({ $0 < 0x80 }) { return utf8.count }
    return reduce(0) { $0 + $1.columns }
  }

  /// Returns the text in exactly so many columns: padded with spaces, or cut with an ellipsis.
  func fit(_ width: Int, isRight: Bool = false, ellipsis: String = "…") -> String {
    guard width > 0 else { return "" }
    let columns = columns
    if columns <= width {
      let padding = String(repeating: " ", count: width - columns)
      return isRight ? padding + self : self + padding
    }
    return cut(to: width, ellipsis: ellipsis).fit(width, isRight: isRight, ellipsis: "")
  }

  /// Returns the beginning of the text, with an ellipsis if it is longer than so many columns.
  ///
  /// - Parameter width: At least the columns of the ellipsis.
  func cut(to width: Int, ellipsis: String = "…") -> String {
    if columns <= width { return self }
    let room = width - ellipsis.columns
    var (text, used) = ("", 0)
    for character in self {
      used += character.columns
      if used > room { break }
      text.append(character)
    }
    return text + ellipsis
  }

  /// Returns the lines of the text, each of which has at most so many columns.
  func wrapped(to width: Int) -> [String] {
    split(separator: "\n", omittingEmptySubsequences: false).flatMap { line in
      String(line).printable.wrappedLine(to: max(width, 1))
    }
  }

  private func wrappedLine(to width: Int) -> [String] {
    var (lines, line, used) = ([String](), "", 0)
    for character in self {
      if used + character.columns > width, !line.isEmpty {
        lines.append(line)
        (line, used) = ("", 0)
      }
      line.append(character)
      used += character.columns
    }
    return lines + [line]
  }
}

extension Character {
  /// The number of columns that the character takes in a terminal. Most terminals do not join what a
  /// joiner connects, such as the persons of a family.
  var columns: Int {
    let columns = unicodeScalars.reduce(0) { $0 + $1.columns }
    return unicodeScalars.contains("\u{FE0F}") ? max(columns, 2) : columns
  }
}

extension Unicode.Scalar {
  fileprivate var isUnprintable: Bool {
    switch properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: true
    // XML has no place for these two.
    case .unassigned: value == 0xFFFE || value == 0xFFFF
    // Marks that reverse the direction of text would reorder the columns.
    case .format: (0x202A...0x202E).contains(value) || (0x2066...0x2069).contains(value)
    default: false
    }
  }

  /// The number of columns: 0, 1 or 2.
  fileprivate var columns: Int {
    if value < 0x300 { return 1 }
    switch properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return 0
    default: break
    }
    switch value {
    // The later letters of a Korean syllable are part of the first one.
    case 0x1160...0x11FF: return 0
    // Two of them are a flag.
    case 0x1F1E6...0x1F1FF: return 1
    default: return properties.isEmojiPresentation || isWide ? 2 : 1
    }
  }

  /// Whether the scalar is in one of the blocks with East Asian wide characters.
  fileprivate var isWide: Bool {
    switch value {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF,
      0xA000...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60,
      0xFFE0...0xFFE6, 0x20000...0x3FFFD:
      true
    default: false
    }
  }
}

/// Returns a duration in seconds as a short text with one unit, such as `12s`.
func shortDuration(_ seconds: Double) -> String {
  switch seconds {
  case ..<1: "now"
  case ..<60: "\(Int(seconds))s"
  case ..<3_600: "\(Int(seconds / 60))m"
  case ..<86_400: "\(Int(seconds / 3_600))h"
  default: "\(Int(min(seconds / 86_400, 99_999)))d"
  }
}

/// Returns the duration of a run in seconds as a text, such as `85 ms` or `1.2 s`.
func exactDuration(_ seconds: Double) -> String {
  switch seconds {
  case ..<0.9995: return "\(Int((seconds * 1_000).rounded())) ms"
  case ..<99.95:
    let tenths = Int((seconds * 10).rounded())
    return "\(tenths / 10).\(tenths % 10) s"
  default: return "\(Int(min(seconds, 1e9))) s"
  }
}

/// Returns a duration in seconds as hours, minutes and seconds.
func clockDuration(_ seconds: Double) -> String {
  let all = Int(min(max(seconds, 0), 1e9))
  func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
  return "\(all / 3_600 > 0 ? "\(all / 3_600):" : "")\(two(all / 60 % 60)):\(two(all % 60))"
}

/// Returns a count with its noun, such as `1 store` or `2 stores`.
func counted(_ count: Int, _ noun: String) -> String {
  count == 1 ? "1 \(noun)" : "\(count) \(noun)s"
}
