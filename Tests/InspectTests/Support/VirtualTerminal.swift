/// The screen of a terminal, after the codes that were sent to it.
struct VirtualTerminal {
  private(set) var size: (columns: Int, rows: Int)
  private var cells: [[Character]]
  private var cursor = (row: 0, column: 0)
  private var pending = ""
  private(set) var isAlternate = false
  /// The number of times that the alternate screen was closed.
  private(set) var departures = 0
  private var isCursorVisible = true
  private var wraps = true
  /// Whether a code for a colour was sent.
  private(set) var hasColour = false
  /// Codes that the inspector must not send.
  private(set) var unknown: [String] = []

  init(columns: Int, rows: Int) {
    size = (columns, rows)
    cells = Self.blank(size)
  }

  private static func blank(_ size: (columns: Int, rows: Int)) -> [[Character]] {
    Array(repeating: Array(repeating: " ", count: size.columns), count: size.rows)
  }

  /// Whether the cursor is visible, and long lines are wrapped, as other programs expect it.
  var isPlain: Bool { isCursorVisible && wraps }
  /// Whether the cursor is hidden, and long lines are cut, as the inspector draws.
  var isDrawing: Bool { !isCursorVisible && !wraps }

  /// The lines without the spaces at their ends.
  var lines: [String] {
    cells.map { row in
      let end = row.lastIndex { $0 != " " }.map { $0 + 1 } ?? 0
      return String(row[..<end])
    }
  }

  var text: String { lines.joined(separator: "\n") }

  mutating func resize(columns: Int, rows: Int) {
    size = (columns, rows)
    cells = Self.blank(size)
  }

  mutating func feed(_ text: String) {
    for character in text { feed(character) }
  }

  private mutating func feed(_ character: Character) {
    if pending.isEmpty {
      switch character {
      case "\u{1B}": pending = "\u{1B}"
      case "\r": cursor.column = 0
      case "\n": cursor.row = min(cursor.row + 1, size.rows - 1)
      case "\r\n": cursor = (min(cursor.row + 1, size.rows - 1), 0)
      default: put(character)
      }
      return
    }
    pending.append(character)
    if pending.count == 2, character == "[" { return }
    guard pending.count == 2 || character.isLetter else { return }
    perform(String(pending.dropFirst(2)))
    pending = ""
  }

  private mutating func put(_ character: Character) {
    guard cursor.row < size.rows, cursor.column < size.columns else { return }
    cells[cursor.row][cursor.column] = character
    cursor.column += 1
  }

  private mutating func perform(_ code: String) {
    switch code {
    case "?1049h": (isAlternate, cells) = (true, Self.blank(size))
    case "?1049l":
      (isAlternate, cells) = (false, Self.blank(size))
      departures += 1
    case "?25h": isCursorVisible = true
    case "?25l": isCursorVisible = false
    case "?2026h", "?2026l": break
    case "?7h": wraps = true
    case "?7l": wraps = false
    case "2J": cells = Self.blank(size)
    case _ where code.hasSuffix("H"):
      let numbers = code.dropLast().split(separator: ";").compactMap { Int($0) }
      cursor = ((numbers.first ?? 1) - 1, (numbers.last ?? 1) - 1)
    case _ where code.hasSuffix("m"):
      let numbers = code.dropLast().split(separator: ";").compactMap { Int($0) }
      if numbers.contains(where: (30...49).contains) { hasColour = true }
    default: unknown.append(code)
    }
  }
}
