import Glibc

/// The terminal form: waits for keys, messages and signals, and draws.
final class TerminalSession {
  /// The shortest time between two screens, in seconds.
  private static let frameInterval = 0.05
  private static let searchInterval = 0.25

  private let target: Target
  private let waits: Bool
  private let style: OutputStyle
  private let device: TerminalDevice
  private let signals: Signals
  private var link: Link?
  private var last: UsedSocket?
  private var state = State()

  /// What is shown.
  private struct State {
    var model = InspectorModel()
    var view = TerminalView()
    var keys = KeyDecoder()
    var commands: [Int: String] = [:]
    /// The difference between the program's clock and the monotonic one, in seconds.
    var clockOffset = Time.now - Time.monotonic
    var frame: [String] = []
    var nextFrame = 0.0
    var nextSearch = 0.0
    var isDirty = true
  }

  init(target: Target, waits: Bool, style: OutputStyle) throws(InspectError) {
    self.target = target
    self.waits = waits
    self.style = style
    signals = try Signals([SIGWINCH, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT])
    device = TerminalDevice()
  }

  /// Shows the program until the user quits, or a signal ends it, whose number is returned then.
  func run(_ link: Link?) -> Int32? {
    connect(to: link)
    device.enter()
    defer { device.leave() }
    while true {
      draw()
      var poll = Poll()
      poll.add(signals.descriptor)
      poll.add(device.input)
      if let link { poll.add(link.connection.descriptor, write: link.connection.hasOutput) }
      poll.wait(timeout)
      for number in poll.canRead(signals.descriptor) ? signals.received() : [] {
        if handle(signal: number) { return number }
      }
      if poll.canRead(device.input) {
        guard readKeys() else { return nil }
      } else if !press(state.keys.timeOut(at: Time.monotonic)) {
        return nil
      }
      if let link, poll.canRead(link.connection.descriptor) { receive() }
      self.link?.connection.flush()
      search()
    }
  }

  private var timeout: Double {
    let now = Time.monotonic
    if let time = state.keys.escapeTime { return max(time - now, 0) }
    // Ages change each second.
    var next = max(state.nextFrame, state.isDirty ? 0 : now + 1)
    if waits, link == nil { next = min(next, state.nextSearch) }
    return max(next - now, 0)
  }

  private func connect(to link: Link?) {
    self.link = link
    guard let link else { return }
    last = link.socket
    state.model.reconnect()
    state.view.reconnect()
    // The numbers of the commands begin again.
    state.commands = [:]
    // The greeting may have been read to list the programs.
    receive()
  }

  private func search() {
    guard waits, link == nil, Time.monotonic >= state.nextSearch else { return }
    state.nextSearch = Time.monotonic + Self.searchInterval
    connect(to: target.connect(after: last))
  }

  private func receive() {
    guard let connection = link?.connection else { return }
    for line in connection.readLines() {
      guard let message = try? ServerMessage(line: line) else { continue }
      if case .hello(let hello) = message { state.clockOffset = hello.now - Time.monotonic }
      state.model.receive(message)
      if case .reply(let id, let error) = message { report(id, error) }
    }
    if connection.isEnded {
      link = nil
      state.model.end(reason: waits ? "Waiting for its next start." : "Press q to quit.")
    }
    state.isDirty = true
  }

  private func report(_ id: Int, _ error: String?) {
    guard let command = state.commands.removeValue(forKey: id) else { return }
    state.view.notice = error.map { "\(command): \($0)" } ?? "\(command): done"
  }

  /// Returns false if the user quits.
  private func readKeys() -> Bool {
    switch device.input.read() {
    case .nothing: return true
    case .end: return false
    case .bytes(let bytes):
      let now = Time.monotonic
      for byte in bytes where !press(state.keys.feed(byte, at: now)) { return false }
      return true
    }
  }

  private func press(_ keys: [Key]) -> Bool {
    for key in keys {
      let height = TerminalScreen.height(device.size)
      state.view.update(state.model, height: height)
      state.isDirty = true
      state.nextFrame = 0
      switch state.view.press(key, model: state.model, height: height) {
      case .quit: return false
      case .redraw: state.frame = []
      case .send(let command): send(command)
      case nil: break
      }
    }
    return true
  }

  private func send(_ command: InspectorCommand) {
    if case .unwatch = command { state.model.closeDetail() }
    guard let connection = link?.connection else { return }
    state.commands[connection.send(command)] = command.text(in: state.model)
  }

  /// Handles a signal, and returns whether it ends the program.
  private func handle(signal number: Int32) -> Bool {
    switch number {
    case SIGWINCH: break
    case SIGTSTP:
      device.leave()
      Signals.raiseByDefault(SIGTSTP)
      device.enter()
    case SIGCONT: device.enter()
    default: return true
    }
    state.frame = []
    state.isDirty = true
    state.nextFrame = 0
    return false
  }

  private func draw() {
    let now = Time.monotonic
    guard state.isDirty && now >= state.nextFrame || now >= state.nextFrame + 1 else { return }
    let size = device.size
    let screen = TerminalScreen(
      model: state.model, size: size, glyphs: style.glyphs, now: now + state.clockOffset)
    let frame = screen.lines(&state.view).map { $0.encoded(hasColour: style.hasColour) }
    device.write(Self.codes(from: state.frame, to: frame))
    state.frame = frame
    state.isDirty = false
    // A program with many stores may change faster than they can be drawn. The keys come first.
    let duration = Time.monotonic - now
    state.nextFrame = now + max(Self.frameInterval, 4 * duration)
  }

  /// Returns the codes that change one screen into another, line by line.
  static func codes(from old: [String], to new: [String]) -> String {
    var text = "\u{1B}[?2026h"
    if old.count != new.count { text += "\u{1B}[2J" }
    for (index, line) in new.enumerated() where old.count != new.count || old[index] != line {
      text += "\u{1B}[\(index + 1);1H\(line)"
    }
    return text + "\u{1B}[?2026l"
  }
}
