import Foundation
import Testing

/// A Markdown file of this package, and the Swift file with its blocks.
struct Document: Sendable, CustomTestStringConvertible {
  private static let tests = URL(filePath: #filePath).deletingLastPathComponent()
  private static let root = tests.deletingLastPathComponent().deletingLastPathComponent()
  private static let snippetFolders = [
    root.appending(path: "Examples/Snippets"), tests.appending(path: "Snippets"),
  ]

  let url: URL

  /// The names of the kinds of `OperationIssue`, from the files that declare them.
  static func reportKinds() throws -> [String] {
    let files = [
      "ReactiveStreams/OperationIssue.swift", "Operation/OperationIssue+Kinds.swift",
      "SharingOperation/SharedQuery.swift",
    ]
    return try files.flatMap { file in
      try String(contentsOf: root.appending(path: "Sources/\(file)"), encoding: .utf8)
        .matches(of: /(?:Kind|Self)\(rawValue: "([^"]+)"\)/).map { String($0.output.1) }
    }
  }

  /// The names of the methods that return a request with a modifier.
  static func modifierNames() throws -> Set<String> {
    let method =
      /public func (\w+)[^{]*?->\s*(?:Configured|ModifiedOperation|Transformed(?:Mutation|Operation)|MappedQuery)\b/
    let texts = try ["Modifiers", "Conditions", "Client"].flatMap { folder in
      let folder = root.appending(path: "Sources/Operation/\(folder)")
      return try FileManager.default.contentsOfDirectory(
        at: folder, includingPropertiesForKeys: nil
      )
      .map { try String(contentsOf: $0, encoding: .utf8) }
    }
    return Set(texts.flatMap { $0.matches(of: method).map { String($0.output.1) } })
  }

  /// The README and every file of the documentation catalogs.
  static let all: [Document] = {
    let sources = FileManager.default.enumerator(
      at: root.appending(path: "Sources"), includingPropertiesForKeys: nil)
    let pages = (sources?.allObjects as? [URL] ?? []).filter { $0.pathExtension == "md" }
    return ([root.appending(path: "README.md")] + pages).map(Document.init(url:))
  }()

  /// The files of snippets, in the order of their names: `Guide.swift`, and then `Guide+Topic.swift`.
  static func snippetFiles() throws -> [URL] {
    try snippetFolders.flatMap { folder in
      try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        // The copy for the thread sanitizer has it.
        .filter { $0.lastPathComponent != "PthreadMutex.swift" }
    }
    .sorted { $0.deletingPathExtension().path < $1.deletingPathExtension().path }
  }

  /// Returns the name of the document that a file of snippets is for.
  static func name(ofSnippets file: URL) -> String {
    let name = file.deletingPathExtension().lastPathComponent
    return String(name.prefix { $0 != "+" })
  }

  var name: String { url.deletingPathExtension().lastPathComponent }
  var testDescription: String { name }

  /// The code blocks of the document, in their order.
  func blocks() throws -> [CodeBlock] {
    CodeBlock.blocks(of: try String(contentsOf: url, encoding: .utf8)) { line in
      line.hasPrefix("```") ? String(line.dropFirst(3)) : nil
    } isEnd: { line in
      line == "```"
    }
  }

  /// The snippets that the build compiles for the document, in their order.
  func snippets() throws -> [CodeBlock] {
    let files = try Self.snippetFiles().filter { Self.name(ofSnippets: $0) == name }
    return try files.flatMap { file in
      CodeBlock.blocks(of: try String(contentsOf: file, encoding: .utf8)) { line in
        line.hasPrefix("// snippet: ") ? String(line.dropFirst(12)) : nil
      } isEnd: { line in
        line == "// end"
      }
    }
  }
}

/// Lines between two marks, and the label of the first mark.
struct CodeBlock {
  let label: String
  var lines: [Substring] = []

  var text: String { lines.joined(separator: "\n") }

  /// Returns the blocks of a text. A block without an end mark extends to the end of the text.
  static func blocks(
    of text: String, label: (Substring) -> String?, isEnd: (Substring) -> Bool
  ) -> [CodeBlock] {
    var blocks: [CodeBlock] = []
    var open: CodeBlock?
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if let block = open, isEnd(line) {
        blocks.append(block)
        open = nil
      } else if open != nil {
        open?.lines.append(line)
      } else if let label = label(line) {
        open = CodeBlock(label: label)
      }
    }
    return blocks + (open.map { [$0] } ?? [])
  }
}
