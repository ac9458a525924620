import Testing

@testable import inspect

extension KeyDecoder {
  /// Returns the keys that a byte completes, which comes without a delay.
  fileprivate mutating func feed(_ byte: UInt8) -> [Key] { feed(byte, at: 0) }

  /// Returns the key Escape, if it was pressed, after a long time.
  fileprivate mutating func timeOut() -> [Key] { timeOut(at: .infinity) }
}

@Suite struct KeyTests {
  private func keys(_ text: String) -> [Key] {
    var decoder = KeyDecoder()
    return text.utf8.flatMap { decoder.feed($0) } + decoder.timeOut()
  }

  @Test(
    "Bytes are decoded to keys",
    arguments: [
      ("q", [Key.character("q")]), ("ä€😀", [.character("ä"), .character("€"), .character("😀")]),
      ("\u{1B}[A\u{1B}[B\u{1B}OC\u{1B}OD", [.up, .down, .right, .left]),
      ("\u{1B}[5~\u{1B}[6~", [.pageUp, .pageDown]),
      (
        "\u{1B}[H\u{1B}[F\u{1B}[1~\u{1B}[4~\u{1B}[7~\u{1B}[8~",
        [.home, .end, .home, .end, .home, .end]
      ),
      ("\r\n\t\u{7F}\u{8}\u{C}", [.enter, .enter, .tab, .backspace, .backspace, .redraw]),
      ("\u{1B}", [.escape]), ("\u{1B}\u{1B}", [.escape, .escape]),
      ("\u{1B}q", [.escape, .character("q")]),
      // Unknown sequences, sequences with modifiers, and control characters.
      ("\u{1B}[1;5A\u{1B}[24~\u{1B}[99Z\u{1}\u{2}x", [.up, .character("x")]),
      // The function keys of a console.
      ("\u{1B}[[A\u{1B}[[Cx", [.character("x")]),
    ] as [(String, [Key])])
  func decode(_ text: String, _ expected: [Key]) {
    #expect(keys(text) == expected)
  }

  @Test("A single escape is undecided until its timeout") func escape() {
    var decoder = KeyDecoder()
    #expect(decoder.feed(0x1B) == [] && decoder.escapeTime != nil)
    #expect(decoder.timeOut() == [.escape] && decoder.escapeTime == nil)
    #expect(decoder.timeOut() == [])
    #expect(decoder.feed(0x1B) == [] && decoder.feed(0x5B) == [] && decoder.escapeTime == nil)
    #expect(decoder.feed(0x41) == [.up])
  }

  @Test("A message between the bytes of a key does not divide it") func interrupted() throws {
    var decoder = KeyDecoder()
    #expect(decoder.feed(0x1B, at: 5) == [] && decoder.timeOut(at: 5.01) == [])
    #expect(decoder.feed(0x5B, at: 5.02) == [] && decoder.feed(0x41, at: 5.02) == [.up])
    #expect(decoder.feed(0x1B, at: 6) == [])
    let time = try #require(decoder.escapeTime)
    #expect(time > 6 && decoder.timeOut(at: time) == [.escape])
  }

  @Test("Bytes that are not UTF-8 are dropped, and later bytes are read") func malformed() {
    var decoder = KeyDecoder()
    let bytes: [UInt8] = [
      0xFF, 0x80, 0xC3, 0x61, 0xE0, 0x80, 0x80, 0xF0, 0x9F, 0x1B, 0x5B, 0x41, 0x62,
    ]
    #expect(bytes.flatMap { decoder.feed($0) } == [.character("a"), .up, .character("b")])
  }

  @Test("No byte stops the decoder in any state") func everyByte() {
    let prefixes: [[UInt8]] = [
      [], [0x1B], [0x1B, 0x5B], [0x1B, 0x5B, 0x31], [0xE2], [0xE2, 0x82],
    ]
    for prefix in prefixes {
      for byte in UInt8.min...UInt8.max {
        var decoder = KeyDecoder()
        for first in prefix { _ = decoder.feed(first) }
        _ = decoder.feed(byte)
        // At most the end of a sequence or of a character swallows it.
        let rest = [UInt8](repeating: UInt8(ascii: "A"), count: 20).flatMap { decoder.feed($0) }
        #expect(rest.contains(.character("A")))
      }
    }
  }

  @Test("A sequence ends after sixteen parameters") func longSequence() {
    let digits = String(repeating: "1", count: 17)
    #expect(keys("\u{1B}[\(digits)x") == [.character("x")])
  }
}
