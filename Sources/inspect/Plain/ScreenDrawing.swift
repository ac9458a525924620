/// Draws the lines of a terminal as an SVG image.
struct ScreenDrawing: Sendable {
  private static let cell = (width: 8.4, height: 18.0)
  private static let margin = 14.0

  let size: TerminalSize

  /// Returns the image of a screen.
  func svg(_ lines: [StyledLine]) -> String {
    let width = Double(size.columns) * Self.cell.width + 2 * Self.margin
    let height = Double(size.rows) * Self.cell.height + 2 * Self.margin
    var text = """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(width) \(height)" width="\(width)"
        height="\(height)" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace"
        font-size="14" role="img" aria-label="The inspector in a terminal">
      <rect width="100%" height="100%" rx="8" fill="#14171c"/>

      """
    for (row, line) in lines.enumerated() { text += self.row(line, row) }
    return text + "</svg>\n"
  }

  private func row(_ line: StyledLine, _ row: Int) -> String {
    var (text, column) = ("", 0)
    let top = Self.margin + Double(row) * Self.cell.height
    if line.isReversed {
      let width = Double(size.columns) * Self.cell.width
      text += """
        <rect x="\(Self.margin)" y="\(top)" width="\(width)" height="\(Self.cell.height)" \
        fill="#d5dae3"/>

        """
    }
    for span in line.spans {
      let columns = span.text.columns
      defer { column += columns }
      guard span.text.contains(where: { $0 != " " }) else { continue }
      let x = Self.margin + Double(column) * Self.cell.width
      let width = Double(columns) * Self.cell.width
      let weight = span.style == .heading ? " font-weight=\"bold\"" : ""
      text += """
        <text x="\(Self.rounded(x))" y="\(top + 13.5)" textLength="\(Self.rounded(width))" \
        xml:space="preserve" fill="\(span.style.colour(isReversed: line.isReversed))"\(weight)>\
        \(Self.escaped(span.text))</text>

        """
    }
    return text
  }

  private static func rounded(_ number: Double) -> Double { (number * 10).rounded() / 10 }

  private static func escaped(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "") { result, scalar in
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      default: result.unicodeScalars.append(scalar)
      }
    }
  }
}

extension StyledLine.Style {
  fileprivate func colour(isReversed: Bool) -> String {
    switch self {
    case .plain: isReversed ? "#14171c" : "#d5dae3"
    case .heading: isReversed ? "#14171c" : "#ffffff"
    case .secondary: isReversed ? "#5a6270" : "#8b94a3"
    case .success: isReversed ? "#1c6b34" : "#6cc985"
    case .failure: isReversed ? "#a3222c" : "#f2777f"
    case .loading: isReversed ? "#0d6577" : "#59c2d6"
    case .paused: isReversed ? "#7a3a91" : "#cf94e6"
    case .stale: isReversed ? "#7a5a00" : "#e2b857"
    }
  }
}
