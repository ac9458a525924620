import Glibc

/// The terminal of this process, in raw mode on its alternate screen.
///
/// However the process ends, the terminal is as it was before: on a signal, after an error, and
/// after a trap, for which a handler is installed.
final class TerminalDevice {
  let input: Descriptor
  private let output: Int32
  private var isEntered = false

  /// The mode of the terminal at the start, which the handler of a trap needs, too.
  private static let original: termios = {
    var mode = termios()
    tcgetattr(STDIN_FILENO, &mode)
    return mode
  }()

  // Without wrapping: a line that is wider than it is computed does not damage the next one.
  private static let enterCodes = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l\u{1B}[2J"
  private static let leaveCodes: StaticString = "\u{1B}[0m\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

  /// Returns whether standard input and output are a terminal that can be drawn on.
  static var isUsable: Bool {
    isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1
      && getenv("TERM").map { strcmp($0, "dumb") != 0 } ?? false
  }

  init() {
    input = Descriptor(owning: dup(STDIN_FILENO))
    output = STDOUT_FILENO
    _ = Self.original
    for number in [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV] {
      signal(number) { number in
        TerminalDevice.restore()
        signal(number, SIG_DFL)
        raise(number)
      }
    }
  }

  deinit { leave() }

  /// Changes to raw mode and the alternate screen.
  func enter() {
    var mode = Self.original
    mode.c_lflag &= ~tcflag_t(ICANON | ECHO | IEXTEN)
    mode.c_iflag &= ~tcflag_t(ICRNL | INLCR | IXON)
    tcsetattr(STDIN_FILENO, TCSANOW, &mode)
    isEntered = true
    write(Self.enterCodes)
  }

  func leave() {
    guard isEntered else { return }
    isEntered = false
    Self.restore()
  }

  /// Restores the terminal. A handler of a signal calls it, so it allocates nothing.
  private static func restore() {
    _ = leaveCodes.withUTF8Buffer { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
    var mode = original
    // A hangup leaves nothing to restore, and drained output may never be read.
    tcsetattr(STDIN_FILENO, TCSANOW, &mode)
  }

  var size: TerminalSize {
    var size = winsize()
    guard ioctl(output, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
      return TerminalSize()
    }
    return TerminalSize(columns: Int(size.ws_col), rows: Int(size.ws_row))
  }

  func write(_ text: String) { StandardStreams.write(text, to: output) }
}
