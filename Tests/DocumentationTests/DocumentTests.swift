import Foundation
import Testing

@Suite struct DocumentTests {
  @Test(
    "Every Swift block in a document is code that the build compiles",
    arguments: Document.all)
  func blocksAreCompiled(in document: Document) throws {
    let blocks = try document.blocks().filter { $0.label == "swift" }.map(\.text)
    #expect(blocks == (try document.snippets().map(\.text)))
  }

  @Test(
    "Every code block has a known label, so that no block is skipped", arguments: Document.all)
  func kindsAreKnown(in document: Document) throws {
    for block in try document.blocks() {
      #expect(["swift", "sh", ""].contains(block.label), "\(block.text)")
    }
  }

  @Test("Every file of snippets belongs to a document") func filesAreUsed() throws {
    let names = Set(Document.all.map(\.name))
    for file in try Document.snippetFiles() {
      #expect(names.contains(Document.name(ofSnippets: file)), "\(file.lastPathComponent)")
    }
    #expect(names.count == Document.all.count, "Two documents have the same name.")
  }

  @Test("Each kind of report is in the guide Troubleshooting") func reports() throws {
    let guide = try #require(Document.all.first { $0.name == "Troubleshooting" })
    let text = try String(contentsOf: guide.url, encoding: .utf8)
    let kinds = try Document.reportKinds()
    #expect(kinds.count > 10)
    for kind in kinds { #expect(text.contains("| `\(kind)` |"), "\(kind)") }
  }

  @Test("Each modifier is in the guide AllModifiers") func modifiers() throws {
    let guide = try #require(Document.all.first { $0.name == "AllModifiers" })
    let text = try String(contentsOf: guide.url, encoding: .utf8)
    let names = try Document.modifierNames()
    #expect(names.count > 25)
    for name in names { #expect(text.contains("\(name)("), "\(name)") }
  }
}
