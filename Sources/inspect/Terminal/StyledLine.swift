/// A line of the screen, in parts that have a style each.
struct StyledLine: Equatable, Sendable {
  /// What a part means. Each colour has one meaning.
  enum Style: CaseIterable, Sendable {
    case plain, secondary, heading, success, failure, loading, paused, stale
  }

  struct Span: Equatable, Sendable {
    var text: String
    var style: Style
  }

  private(set) var spans: [Span] = []
  /// Whether the whole line is in reverse.
  var isReversed = false

  init(_ text: String = "", _ style: Style = .plain, isReversed: Bool = false) {
    self.isReversed = isReversed
    append(text, style)
  }

  /// Appends a text, without characters that would command the terminal.
  mutating func append(_ text: String, _ style: Style = .plain) {
    if !text.isEmpty { spans.append(Span(text: text.printable, style: style)) }
  }

  /// The line without its styles.
  var text: String { spans.reduce("") { $0 + $1.text } }

  /// Returns the line in exactly so many columns.
  func fit(_ width: Int, ellipsis: String = "…") -> StyledLine {
    var (line, room) = (StyledLine(isReversed: isReversed), width)
    for span in spans where room > 0 {
      let text = span.text.columns <= room ? span.text : span.text.cut(to: room, ellipsis: ellipsis)
      line.append(text, span.style)
      room -= text.columns
    }
    line.append(String(repeating: " ", count: max(room, 0)))
    return line
  }

  /// Returns the line with the codes of a terminal. Without colours, bold and reverse text remain.
  func encoded(hasColour: Bool) -> String {
    var text = ""
    for span in spans {
      var codes = span.style.codes(hasColour: hasColour)
      if isReversed { codes.append("7") }
      text +=
        codes.isEmpty ? span.text : "\u{1B}[\(codes.joined(separator: ";"))m\(span.text)\u{1B}[0m"
    }
    return text
  }
}

extension StyledLine.Style {
  fileprivate func codes(hasColour: Bool) -> [String] {
    switch self {
    case .plain: []
    case .heading: ["1"]
    case .secondary: hasColour ? ["2"] : []
    case .success: hasColour ? ["32"] : []
    case .failure: hasColour ? ["31"] : []
    case .loading: hasColour ? ["36"] : []
    case .paused: hasColour ? ["35"] : []
    case .stale: hasColour ? ["33"] : []
    }
  }
}

extension StyledLine {
  /// The signs beside the colours.
  struct Glyphs: Equatable, Sendable {
    /// False for terminals that show no UTF-8.
    var isUnicode = true

    var folded: String { isUnicode ? "▸" : "+" }
    var unfolded: String { isUnicode ? "▾" : "-" }
    var ellipsis: String { isUnicode ? "…" : "~" }
    var live: String { isUnicode ? "●" : "*" }
    var dash: String { isUnicode ? "–" : "-" }
    var bullet: String { isUnicode ? " · " : " - " }
    var ascending: String { isUnicode ? "↑" : "^" }
    var descending: String { isUnicode ? "↓" : "v" }

    func bar(of phase: RunRecord.Phase.Kind) -> String {
      switch phase {
      case .working: isUnicode ? "█" : "#"
      case .waiting: isUnicode ? "░" : "."
      case .paused: isUnicode ? "‖" : "|"
      }
    }

    func sign(of status: StoreRecord.Status) -> String {
      switch status {
      case .success: isUnicode ? "✓" : "+"
      case .failure: isUnicode ? "✗" : "!"
      case .loading: isUnicode ? "↻" : ">"
      case .paused: isUnicode ? "‖" : "|"
      case .idle: isUnicode ? "·" : "."
      }
    }

    /// Whether the result of a store is stale, in a word with its style; a dash without a result.
    func freshness(of store: StoreRecord) -> (text: String, style: Style) {
      if store.lastResult == nil { return (dash, .plain) }
      return store.isStale ? ("stale", .stale) : ("fresh", .plain)
    }
  }
}

extension StoreRecord.Status {
  var style: StyledLine.Style {
    switch self {
    case .success: .success
    case .failure: .failure
    case .loading: .loading
    case .paused: .paused
    case .idle: .secondary
    }
  }
}
