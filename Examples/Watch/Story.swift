import Foundation
import SharingOperation

/// Changes a file of settings, and tells what a query of it shows.
struct Story: Sendable {
  let file: URL
  let client: OperationClient
  let tell: @Sendable (String) -> Void

  func run() async throws {
    let controller = FileController(file)
    // What is wrong with a file is wrong with it a second later, too.
    let query = SettingsQuery(file: file).retry(limit: 0).controlled(by: controller)
    let store = client.store(for: query)
    var watching = controller.isWatching.values.makeAsyncIterator()
    var screen = Screen(tell: tell)

    try write("greeting = Hello", "Somebody looks at what a file says.")
    screen.states = store.states.makeAsyncIterator()
    await screen.showNext()
    try write("greeting = Hello\nvolume = 3", "The file is written again.", inPlace: true)
    await screen.showNext()
    try write("greeting = Hi\nvolume = 4", "Another file takes its place.")
    await screen.showNext()
    try write("greeting: Hi", "Somebody makes a mistake.")
    await screen.showNext()
    tell("The file goes.")
    try FileManager.default.removeItem(at: file)
    await screen.showNext()
    try write("greeting = Hello again", "It is back.")
    await screen.showNext()

    screen.states = nil
    while await watching.next() == true {}
    try write("greeting = Bye", "Nobody looks any more; the file is not watched, and changes.")
    tell("Somebody looks again.")
    screen.states = store.states.makeAsyncIterator()
    await screen.showNext()
    screen.states = nil
    while await watching.next() == true {}
  }

  /// Nobody sees half of a file that takes the place of another. One that is written in place may be
  /// read in the middle, if there is something else to read it for, and is read again at the end.
  private func write(_ text: String, _ why: String, inPlace: Bool = false) throws {
    tell(why)
    try Data(text.utf8).write(to: file, options: inPlace ? [] : .atomic)
  }
}

/// Shows what a query of settings has come to.
private struct Screen {
  let tell: @Sendable (String) -> Void
  var states: StateStream<SettingsQuery.State>.Iterator?
  private var shown = ""

  init(tell: @escaping @Sendable (String) -> Void) {
    self.tell = tell
  }

  /// Waits for something else than what is shown, and shows it.
  mutating func showNext() async {
    while let state = await states?.next() {
      guard case .result(let result) = state.status else { continue }
      let line = result.line
      if line == shown { continue }
      shown = line
      return tell("   \(line)")
    }
  }
}

extension Result<Settings, SettingsError> {
  fileprivate var line: String {
    switch self {
    case .success(let settings): "\(settings)"
    case .failure(let error): "\(error)"
    }
  }
}
