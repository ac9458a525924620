import Foundation

/// How text is written: with colours or not, and with which signs.
struct OutputStyle: Equatable, Sendable {
  var hasColour = true
  /// False in a pipe and in a file, which get no codes at all.
  var isTerminal = true
  var glyphs = StyledLine.Glyphs()

  /// Creates the style for a stream.
  ///
  /// Colours follow the convention of `NO_COLOR`: any value that is not empty turns them off.
  init(environment: [String: String], isTerminal: Bool) {
    self.isTerminal = isTerminal
    hasColour =
      isTerminal && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }
      .first { !$0.isEmpty }
    let name = locale?.uppercased() ?? "UTF-8"
    glyphs.isUnicode = name.contains("UTF-8") || name.contains("UTF8")
  }
}
