import Foundation
import Glibc
import SharingOperation

/// Searches as you type: `swift run search`. Escape ends it. If the input is no terminal, each of
/// its lines is a search.
@main
struct Program {
  static func main() async throws {
    let client = OperationClient()
    guard let screen = Screen(input: STDIN_FILENO, output: STDOUT_FILENO) else {
      while let line = readLine() {
        if line.isEmpty { continue }
        print(line, "→", try await client.ensure(PlacesQuery(text: line)).joined(separator: ", "))
      }
      return
    }
    await Search(screen: screen, client: client).run()
  }
}

/// Displays the model whenever a key or a result arrives, until Escape or the end of the terminal.
struct Search: ~Copyable {
  private enum Change: Sendable {
    case keys(String)
    case result
  }

  private let screen: Screen
  private let model: SearchModel

  init(screen: Screen, client: OperationClient) {
    self.screen = screen
    model = SearchModel(client: client)
  }

  func run() async {
    let (changes, source) = AsyncStream.makeStream(of: Change.self)
    let keys = screen.keys
    let typing = Task {
      for await keys in keys { source.yield(.keys(keys)) }
      source.finish()
    }
    let states = model.$places.states
    let results = Task { for await _ in states { source.yield(.result) } }
    screen.show(model.lines)
    for await change in changes {
      if case .keys(let keys) = change, !take(keys) { break }
      screen.show(model.lines)
    }
    typing.cancel()
    results.cancel()
  }

  /// Handles keys. Returns `false` for Escape, Control-C and Control-D, which end the program.
  private func take(_ keys: String) -> Bool {
    var rest = keys[...]
    while let key = rest.popFirst() {
      switch key {
      case "\u{3}", "\u{4}": return false
      case "\u{1B}":
        guard let next = rest.first else { return false }
        // An arrow, or another key of several characters, which has no meaning here.
        if next == "[" || next == "O" {
          rest = rest.dropFirst().drop { !$0.isLetter && $0 != "~" }.dropFirst()
        }
      case "\u{8}", "\u{7F}": model.change(to: String(model.text.dropLast()))
      case _ where key.unicodeScalars.contains { $0.properties.generalCategory == .control }: break
      default: model.change(to: model.text + String(key))
      }
    }
    return true
  }
}
