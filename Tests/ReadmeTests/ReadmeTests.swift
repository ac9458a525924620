import Foundation
import Testing

@Suite struct ReadmeTests {
  private static let folder = URL(filePath: #filePath).deletingLastPathComponent()

  @Test("Every block of Swift in the README is code that the build has compiled")
  func blocksAreCompiled() throws {
    let root = Self.folder.deletingLastPathComponent().deletingLastPathComponent()
    let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
    let source = try String(
      contentsOf: Self.folder.appending(path: "ReadmeBlocks.swift"), encoding: .utf8)
    let shown = blocks(of: readme, from: "```swift", to: "```")
    #expect(!shown.isEmpty)
    #expect(shown == blocks(of: source, from: "// block", to: "// end"))
  }

  @Test("What the README shows of tests works") func clockIsMoved() async throws {
    try await retriesAfterOneSecond()
  }

  private func blocks(of text: String, from opening: String, to closing: String) -> [[Substring]] {
    var blocks: [[Substring]] = []
    var open: [Substring]?
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line == closing, let block = open {
        blocks.append(block)
        open = nil
      } else if line == opening {
        open = []
      } else {
        open?.append(line)
      }
    }
    return blocks
  }
}
