import Foundation
import Glibc
import SharingOperation
import Synchronization
import Testing

@testable import search

/// A pseudo-terminal: the program has one end, and the test types and reads at the other.
private final class PseudoTerminal: Sendable {
  let terminal: Int32
  private let keyboard: Int32
  private let shown = Mutex("")

  init() throws {
    keyboard = open("/dev/ptmx", O_RDWR | O_NOCTTY)
    // The same as `unlockpt` and `ptsname`, whose declarations are not imported.
    var (lock, number): (Int32, UInt32) = (0, 0)
    try #require(ioctl(keyboard, 0x4004_5431, &lock) == 0)
    try #require(ioctl(keyboard, 0x8004_5430, &number) == 0)
    terminal = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY)
    try #require(terminal >= 0)
    Thread.detachNewThread { [self] in
      var buffer = [UInt8](repeating: 0, count: 4096)
      while case let count = read(keyboard, &buffer, buffer.count), count > 0 {
        shown.withLock { [buffer] in $0 += String(decoding: buffer.prefix(count), as: UTF8.self) }
      }
    }
  }

  func type(_ text: String) {
    let bytes = Array(text.utf8)
    _ = write(keyboard, bytes, bytes.count)
  }

  /// The present contents of the screen.
  var screen: String {
    let text = shown.withLock { $0 }
    return text.components(separatedBy: "\u{1B}[H\u{1B}[2J").last ?? ""
  }

  func wait(until isShown: (String) -> Bool) async {
    while !isShown(screen) { await Task.yield() }
  }

  func close() { _ = Glibc.close(terminal) }
}

@Suite(.serialized, .timeLimit(.minutes(5))) struct SearchTests {
  private let clock = ManualClock()

  @Test("Places are displayed when the typing has paused, and until the next ones arrive")
  func typing() async throws {
    let terminal = try PseudoTerminal()
    let client = OperationClient(defaults: .testing, clock: clock)
    let screen = try #require(Screen(input: terminal.terminal, output: terminal.terminal))
    let program = Task { await Search(screen: screen, client: client).run() }
    for count in 1...3 {
      terminal.type(String("ber".dropFirst(count - 1).prefix(1)))
      let text = String("ber".prefix(count))
      await terminal.wait { $0.hasPrefix("search: \(text)") }
      #expect(client.stores(matching: []).isEmpty)
    }
    await clock.advance(by: .milliseconds(200))
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .milliseconds(150))
    await terminal.wait { $0 == "search: ber\r\n  Berlin\r\n  Bern" }
    #expect(client.stores(matching: []).count == 1)
    terminal.type("l")
    await clock.advance(by: .zero)
    await terminal.wait { $0.hasPrefix("search: berl") }
    #expect(terminal.screen.hasSuffix("Berlin\r\n  Bern"))
    await clock.advance(by: .milliseconds(200))
    await clock.sleepers(atLeast: 1)
    await terminal.wait { $0 == "search: berl …\r\n  Berlin\r\n  Bern" }
    await clock.advance(by: .milliseconds(150))
    await terminal.wait { $0 == "search: berl\r\n  Berlin" }
    terminal.type("\u{1B}")
    await program.value
    terminal.close()
  }

  @Test("Letters outside of ASCII are typed, and an arrow neither types nor ends the program")
  func otherKeys() async throws {
    let terminal = try PseudoTerminal()
    let client = OperationClient(defaults: .testing, clock: clock)
    let screen = try #require(Screen(input: terminal.terminal, output: terminal.terminal))
    let program = Task { await Search(screen: screen, client: client).run() }
    terminal.type("z\u{1B}[1;5Aü\u{1B}OBri\u{7F}")
    await terminal.wait { $0.hasPrefix("search: zür") && !$0.hasPrefix("search: züri") }
    await clock.advance(by: .milliseconds(200))
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .milliseconds(150))
    await terminal.wait { $0 == "search: zür\r\n  Zürich" }
    terminal.type("\u{4}")
    await program.value
    terminal.close()
  }

  @Test("Without a text, no places are displayed") func empty() async throws {
    let model = SearchModel(client: OperationClient(defaults: .testing, clock: clock))
    model.change(to: "x")
    await clock.advance(by: .milliseconds(200))
    #expect(model.$places.isBacked)
    model.change(to: "")
    await clock.advance(by: .milliseconds(200))
    #expect(!model.$places.isBacked)
    #expect(model.lines == ["search: "])
  }
}
