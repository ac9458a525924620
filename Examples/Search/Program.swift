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
      while let line = readLine(), !line.isEmpty {
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
    case key(UInt8)
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
      for await key in keys { source.yield(.key(key)) }
      source.finish()
    }
    let states = model.$places.states
    let results = Task { for await _ in states { source.yield(.result) } }
    screen.show(model.lines)
    for await change in changes {
      if case .key(let key) = change, !take(key) { break }
      screen.show(model.lines)
    }
    typing.cancel()
    results.cancel()
  }

  /// Handles a key. Returns `false` for Escape, Control-C and Control-D, which end the program.
  private func take(_ key: UInt8) -> Bool {
    switch key {
    case 3, 4, 27: return false
    case 8, 127: model.change(to: String(model.text.dropLast()))
    case 32..<127: model.change(to: model.text + String(UnicodeScalar(key)))
    default: break
    }
    return true
  }
}
