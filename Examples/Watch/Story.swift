import Foundation
import SharingOperation

/// Changes a file of settings, and prints what a query of it displays.
struct Story: Sendable {
  let file: URL
  let client: OperationClient
  let printLine: @Sendable (String) -> Void

  func run() async throws {
    let controller = FileController(file)
    // A retry a second later would read the same invalid file.
    let query = SettingsQuery(file: file).retry(limit: 0).controlled(by: controller)
    let store = client.store(for: query)
    var watching = controller.isWatching.values.makeAsyncIterator()
    var screen = Screen(printLine: printLine)

    try write("greeting = Hello", "The first observer subscribes; the file is watched.")
    screen.states = store.states.makeAsyncIterator()
    await screen.showNext()
    try write("greeting = Hello\nvolume = 3", "The file is written again.", inPlace: true)
    await screen.showNext()
    try write("greeting = Hi\nvolume = 4", "The file is replaced by another one.")
    await screen.showNext()
    try write("greeting: Hi", "A line of the file is wrong.")
    await screen.showNext()
    printLine("The file is removed.")
    try FileManager.default.removeItem(at: file)
    await screen.showNext()
    try write("greeting = Hello again", "The file is back.")
    await screen.showNext()

    screen.states = nil
    while await watching.next() == true {}
    try write(
      "greeting = Bye", "No observer is left; the file is not watched any more, and changes.")
    printLine("An observer subscribes again.")
    screen.states = store.states.makeAsyncIterator()
    await screen.showNext()
    screen.states = nil
    while await watching.next() == true {}
  }

  /// Writes the file. A file that replaces another one is never read half-written. One that is
  /// written in place may be, and is read again at the end.
  private func write(_ text: String, _ why: String, inPlace: Bool = false) throws {
    printLine(why)
    try Data(text.utf8).write(to: file, options: inPlace ? [] : .atomic)
  }
}

/// Prints the result of a query of settings.
private struct Screen {
  let printLine: @Sendable (String) -> Void
  var states: StateStream<SettingsQuery.State>.Iterator?
  private var shown = ""

  init(printLine: @escaping @Sendable (String) -> Void) {
    self.printLine = printLine
  }

  /// Waits for a line that differs from the last one, and prints it.
  mutating func showNext() async {
    while let state = await states?.next() {
      guard case .result(let result) = state.status else { continue }
      let line = result.line
      // A file that is written in place may be read while it is empty.
      if line == shown || line.isEmpty { continue }
      shown = line
      return printLine("   \(line)")
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
