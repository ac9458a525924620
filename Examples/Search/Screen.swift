import Foundation
import Glibc
import Synchronization

/// A terminal that passes keys at once, and displays lines in place of the ones before.
///
/// Its settings are restored when it is released.
final class Screen {
  private let input: Int32
  private let output: Int32
  private let settings: termios

  /// Returns `nil` if the input is no terminal.
  init?(input: Int32, output: Int32) {
    var settings = termios()
    guard tcgetattr(input, &settings) == 0 else { return nil }
    (self.input, self.output, self.settings) = (input, output, settings)
    settings.c_lflag &= ~tcflag_t(ICANON | ECHO | ISIG)
    tcsetattr(input, TCSANOW, &settings)
  }

  deinit {
    var settings = settings
    tcsetattr(input, TCSANOW, &settings)
  }

  /// The keys, until the terminal is closed. They are read on a queue, and not on a thread of tasks.
  var keys: AsyncStream<String> {
    AsyncStream { [input] keys in
      let reader = KeyReader(input, keys)
      keys.onTermination = { _ in reader.end() }
    }
  }

  /// Displays lines from the top of the terminal.
  func show(_ lines: [String]) {
    let text = "\u{1B}[H\u{1B}[2J" + lines.joined(separator: "\n")
    let bytes = Array(text.utf8)
    _ = write(output, bytes, bytes.count)
  }
}

/// Reads keys on a queue until it is ended.
///
/// The lock guards the source until it is cancelled.
private final class KeyReader: Sendable {
  private let source: Mutex<(any DispatchSourceRead)?>

  init(_ input: Int32, _ keys: AsyncStream<String>.Continuation) {
    let source = DispatchSource.makeReadSource(fileDescriptor: input, queue: .global())
    source.setEventHandler {
      var bytes = [UInt8](repeating: 0, count: 4_096)
      let count = read(input, &bytes, bytes.count)
      if count <= 0 { return keys.finish() }
      keys.yield(String(decoding: bytes.prefix(count), as: UTF8.self))
    }
    source.activate()
    self.source = Mutex(source)
  }

  func end() {
    let source = source.withLock { $0.take() }
    source?.cancel()
  }
}
