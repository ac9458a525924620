import Glibc

/// The output of the program: lines and progress.
///
/// On a terminal, progress is displayed in one place, below the lines. Elsewhere it is a line like
/// any other. The main actor orders the output.
@MainActor
final class Screen {
  private var text: ScreenText
  private let write: (String) -> Void

  init(_ style: ScreenText.Style, write: @escaping (String) -> Void) {
    text = ScreenText(style)
    self.write = write
  }

  /// Prints the progress of a run, until the next line.
  func progress(_ text: String) { write(self.text.progress(text)) }
  /// Prints a line beside the progress.
  func note(_ text: String) { write(self.text.note(text)) }
  /// Prints a line in place of the progress.
  func line(_ text: String = "") { write(self.text.line(text)) }
  /// Removes the progress.
  func clear() { write(text.clear()) }
}

/// Makes the text that a ``Screen`` writes, with the progress that is displayed.
struct ScreenText {
  enum Style: Equatable {
    case plain
    case terminal(width: Int)
  }

  private let style: Style
  private var shown = ""

  init(_ style: Style) {
    self.style = style
  }

  mutating func progress(_ text: String) -> String {
    guard case .terminal(let width) = style else { return line(text) }
    let cleared = clear()
    // A line that wraps could not be removed.
    shown = String(text.printable.prefix(max(width - 1, 0)))
    return cleared + shown
  }

  mutating func note(_ text: String) -> String {
    let shown = shown
    let line = line(text)
    self.shown = shown
    return line + shown
  }

  mutating func line(_ text: String) -> String {
    clear() + text.printable + "\n"
  }

  mutating func clear() -> String {
    defer { shown = "" }
    return shown.isEmpty ? "" : "\r\u{1B}[K"
  }
}

extension ScreenText.Style {
  /// The style for standard output: a terminal, or plain text.
  static var standardOutput: Self {
    guard isatty(STDOUT_FILENO) == 1, getenv("TERM").map({ strcmp($0, "dumb") != 0 }) ?? false
    else { return .plain }
    var size = winsize()
    let isKnown = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
    return .terminal(width: isKnown ? Int(size.ws_col) : 80)
  }
}

extension String {
  /// The text without control characters, as a server may send any text.
  fileprivate var printable: String {
    String(
      String.UnicodeScalarView(
        unicodeScalars.map { $0.properties.generalCategory == .control ? " " : $0 }))
  }
}
