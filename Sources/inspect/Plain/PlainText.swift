import Foundation

/// The lines for a pipe or a file: one store or one event a line, nothing cut.
struct PlainText: Sendable {
  var style: OutputStyle

  func title(_ hello: Hello) -> String {
    hello.title(separator: style.glyphs.bullet).printable
  }

  /// Returns a line about the program, one about the counts, and one for each store.
  func table(_ model: InspectorModel, now: Double) -> [StyledLine] {
    var lines: [StyledLine] = []
    if let hello = model.hello {
      let state = model.isOffline ? ", as if offline" : ""
      lines.append(
        StyledLine(
          "\(title(hello)) (pid \(hello.pid)), up \(clockDuration(now - hello.started))"
            + ", \(counted(model.stores.count, "store"))\(state)", .heading))
    }
    let tree = StoreTree(model.stores.values, options: .init(isFlat: true))
    let stores = tree.rows.compactMap { $0.store.flatMap { model.stores[$0] } }
    // One path that is very long does not pad the lines of all others.
    let width = min(max(stores.map { $0.name.printable.columns }.max() ?? 0, 4), 100)
    lines.append(
      StyledLine(
        "STATUS     AGE  FRESH   SUB AWAIT   RUN  \("PATH".fit(width))  REQUEST", .heading))
    for store in stores { lines.append(line(store, width: width, now: now)) }
    return lines
  }

  private func line(_ store: StoreRecord, width: Int, now: Double) -> StyledLine {
    let dash = style.glyphs.dash
    let sign = style.glyphs.sign(of: store.status)
    var line = StyledLine("\(sign) \(store.status.rawValue.fit(7))", store.status.style)
    line.append((store.lastResult.map { shortDuration(now - $0) } ?? dash).fit(5, isRight: true))
    let (freshness, freshnessStyle) = style.glyphs.freshness(of: store)
    line.append("  \(freshness.fit(5))", freshnessStyle)
    let numbers = store.numbers
    for number in [numbers.subscribers, numbers.leases, numbers.runs] {
      line.append(" " + "\(number)".fit(5, isRight: true))
    }
    let name = store.name.printable
    line.append("  \(name.columns > width ? name : name.fit(width))  \(store.request)")
    if let error = store.error { line.append("  \(error)", .failure) }
    return line
  }

  /// Returns the line of an event.
  func line(_ event: InspectorEvent, name: String) -> StyledLine {
    var line = StyledLine("\(Self.clock(event.time)) ", .secondary)
    line.append("\(name) ")
    let style: StyledLine.Style =
      switch (event.kind, event.outcome) {
      case ("runEnded", "success"): .success
      case ("runEnded", "failure"): .failure
      case ("paused", _): .paused
      case ("runStarted", _), ("attempt", _): .loading
      default: .plain
      }
    line.append(event.text, style)
    return line
  }

  /// Returns the local time of day, with milliseconds.
  static func clock(_ time: Double) -> String {
    let date = Date(timeIntervalSince1970: time)
    let parts = Calendar.current.dateComponents([.hour, .minute, .second], from: date)
    func two(_ number: Int?) -> String { String("0\(number ?? 0)".suffix(2)) }
    let milliseconds = Int((time - time.rounded(.down)) * 1_000)
    let fraction = String("00\(milliseconds)".suffix(3))
    return "\(two(parts.hour)):\(two(parts.minute)):\(two(parts.second)).\(fraction)"
  }

  func encoded(_ lines: [StyledLine]) -> String {
    lines.map { line in
      (style.isTerminal ? line.encoded(hasColour: style.hasColour) : line.text) + "\n"
    }.joined()
  }
}
