import Foundation
import Glibc

/// The forms that write text and draw nothing: `--once` and `--follow`, as lines or as JSON.
final class PlainSession {
  private let arguments: Arguments
  private let target: Target
  private let text: PlainText
  private var model = InspectorModel()
  /// The names of the stores that were removed last. Their last events come one message later.
  private var removedNames: [Int: String] = [:]

  init(arguments: Arguments, target: Target, style: OutputStyle) {
    self.arguments = arguments
    self.target = target
    text = PlainText(style: style)
  }

  /// Writes the state of the program once.
  func once(_ connection: ProgramConnection) throws(InspectError) {
    let raw = try readSnapshot(connection)
    let now = model.hello?.now ?? Time.now
    if arguments.isJSON {
      StandardStreams.output("{\"hello\":\(raw[0]),\"snapshot\":\(raw[1])}\n")
    } else {
      StandardStreams.output(text.encoded(text.table(model, now: now)))
    }
  }

  /// Writes the screen of the terminal form once, as an image.
  func drawing(_ connection: ProgramConnection) throws(InspectError) {
    _ = try readSnapshot(connection)
    let size = TerminalSize(columns: 100, rows: 30)
    let screen = TerminalScreen(model: model, size: size, now: model.hello?.now ?? Time.now)
    var view = TerminalView()
    StandardStreams.output(ScreenDrawing(size: size).svg(screen.lines(&view)))
  }

  /// Reads the first two messages, and returns their lines.
  private func readSnapshot(_ connection: ProgramConnection) throws(InspectError) -> [String] {
    var raw: [String] = []
    while raw.count < 2 {
      let deadline = Time.monotonic + 10
      guard let line = connection.nextLine(before: deadline) else {
        throw InspectError(model.endReason ?? "the program does not answer")
      }
      receive(line)
      if model.hello != nil { raw.append(String(decoding: line, as: UTF8.self)) }
    }
    return raw
  }

  /// Writes the events until the program ends, and with `--wait` those of its next start.
  func follow(_ link: Link) throws(InspectError) {
    var (link, lastRefusal) = (link, "")
    while true {
      while let line = link.connection.nextLine(before: nil) {
        if arguments.isJSON {
          StandardStreams.output(String(decoding: line, as: UTF8.self) + "\n")
          if model.hello != nil { continue }
        }
        receive(line)
      }
      if let hello = model.hello {
        let reason = model.endReason.map { ": \($0)" } ?? ""
        StandardStreams.error(
          "inspect: \(text.title(hello)) (pid \(hello.pid)) has ended\(reason)\n")
        lastRefusal = ""
      } else {
        let refusal = model.endReason ?? "the program does not answer"
        guard arguments.waits else { throw InspectError(refusal) }
        // It may be refused again and again.
        if refusal != lastRefusal { StandardStreams.error("inspect: \(refusal)\n") }
        lastRefusal = refusal
      }
      guard arguments.waits else { return }
      model.reconnect()
      removedNames = [:]
      link = Inspect.wait(for: target, after: link.socket)
    }
  }

  private func receive(_ line: [UInt8]) {
    guard let message = try? ServerMessage(line: line) else { return }
    var names = removedNames
    if case .changes(let changes) = message {
      removedNames = [:]
      for id in changes.removed { removedNames[id] = model.stores[id]?.name }
      names.merge(removedNames) { $1 }
    }
    model.receive(message)
    guard arguments.form == .follow, !arguments.isJSON else { return }
    switch message {
    case .snapshot:
      StandardStreams.output(text.encoded(text.table(model, now: model.hello?.now ?? Time.now)))
    case .changes(let changes):
      var lines = changes.events.map { event in
        let name = model.stores[event.store]?.name ?? names[event.store]
        return text.line(event, name: name ?? "store \(event.store)")
      }
      if changes.missed > 0 {
        lines.append(StyledLine("\(changes.missed) changes were left out", .secondary))
      }
      StandardStreams.output(text.encoded(lines))
    default: break
    }
  }
}

extension InspectorModel {
  /// The reason of the end, once the program has ended.
  var endReason: String? {
    switch connection {
    case .ended(let reason), .refused(let reason): reason.printable
    case .connecting, .connected: nil
    }
  }
}
