/// Renders a model and a view as the lines of a terminal.
struct TerminalScreen: Sendable {
  let model: InspectorModel
  let size: TerminalSize
  var glyphs = StyledLine.Glyphs()
  /// The program's time, in seconds since 1970.
  var now: Double

  /// The number of lines that are no rows of the table: four above and one below.
  static let frame = 5

  /// The number of rows of the table, or lines of a text, that are visible.
  static func height(_ size: TerminalSize) -> Int { max(size.rows - frame, 1) }

  /// Returns the whole screen, and limits the scrolling of `view`.
  func lines(_ view: inout TerminalView) -> [StyledLine] {
    let height = Self.height(size)
    view.update(model, height: height)
    var lines = [titleLine, countsLine, summaryLine(view)]
    switch view.page {
    case .table:
      let table = StoreTable(
        model: model, width: size.columns, glyphs: glyphs, now: now,
        longestPath: view.tree.longestLabel)
      lines.append(table.heading(view.options))
      lines += table.rows(view, height: height)
    case .detail(let store):
      let detail = DetailText(
        model: model, store: store, width: size.columns, glyphs: glyphs, now: now)
      let text = detail.lines()
      view.limitScroll(lines: text.count, height: height)
      lines.append(detail.heading)
      lines += text.dropFirst(view.scroll).prefix(height)
    case .help:
      lines.append(StyledLine(" Keys", .heading))
      let text = HelpText.lines
      view.limitScroll(lines: text.count, height: height)
      lines += text.dropFirst(view.helpScroll).prefix(height)
    }
    lines = Array(lines.prefix(size.rows - 1))
    lines += Array(repeating: StyledLine(), count: max(size.rows - 1 - lines.count, 0))
    lines.append(footer(view))
    return lines.map { $0.fit(size.columns, ellipsis: glyphs.ellipsis) }
  }

  private var titleLine: StyledLine {
    var line = StyledLine(isReversed: true)
    guard let hello = model.hello else {
      let state =
        switch model.connection {
        case .connecting, .connected: "connecting\(glyphs.ellipsis)"
        case .ended: "ended"
        case .refused: "refused"
        }
      line.append(" inspect: \(state)", .heading)
      return line
    }
    let title = " \(hello.title(separator: glyphs.bullet).printable)"
    let state = stateText
    let uptime = "\(glyphs.bullet)up \(clockDuration(now - hello.started))"
    let facts = "\(glyphs.bullet)pid \(hello.pid)\(uptime)"
    let room = size.columns - state.columns - 1
    line.append((title + facts).fit(room, ellipsis: glyphs.ellipsis), .heading)
    line.append("\(state) ", .heading)
    return line
  }

  private var stateText: String {
    if case .ended = model.connection { return "ended" }
    let access = model.hello?.isReadOnly == true ? "read-only\(glyphs.bullet)" : ""
    return access + (model.isOffline ? "as if offline" : "\(glyphs.live) live")
  }

  private var countsLine: StyledLine {
    var line = StyledLine(" ")
    for (label, count) in model.counts.labelled {
      let name = label == "cancellations" ? "cancelled" : label
      line.append("\(name) ", .secondary)
      line.append("\(count)  ", label == "failures" && count > 0 ? .failure : .plain)
    }
    return line
  }

  private func summaryLine(_ view: TerminalView) -> StyledLine {
    switch model.connection {
    case .ended(let reason): return StyledLine(" The program has ended. \(reason)", .failure)
    case .refused(let reason): return StyledLine(" \(reason)", .failure)
    case .connecting, .connected: break
    }
    var line = StyledLine(" \(counted(model.stores.count, "store"))  ", .heading)
    for status in StoreRecord.Status.allCases {
      let count = model.count(of: status)
      guard count > 0 else { continue }
      line.append("\(glyphs.sign(of: status)) \(count) \(status.rawValue)  ", status.style)
    }
    if !view.options.filter.isEmpty, !view.isFiltering {
      line.append("filter: \(view.options.filter)  ", .heading)
    }
    if model.missed > 0 { line.append("\(model.missed) changes left out", .secondary) }
    return line
  }

  private func footer(_ view: TerminalView) -> StyledLine {
    if view.isFiltering {
      var line = StyledLine(" Filter: ", .heading)
      line.append("\(view.options.filter)_")
      return line
    }
    if let notice = view.notice { return StyledLine(" \(notice)", .heading) }
    let keys: [(String, String)] =
      switch view.page {
      case .table:
        [
          ("/", "filter"), ("s", "sort"), ("enter", "open"), ("r", "refetch"),
          ("i", "invalidate"), ("?", "keys"), ("q", "quit"),
        ]
      case .detail:
        [
          ("esc", "back"), ("r", "refetch"), ("i", "invalidate"), ("x", "cancel"),
          ("R", "reset"), ("C", "clear"), ("?", "keys"),
        ]
      case .help:
        Self.height(size) < HelpText.keys.count
          ? [("up down", "scroll"), ("any other key", "back")] : [("any key", "back")]
      }
    var line = StyledLine(" ")
    for (key, text) in keys {
      line.append(key, .heading)
      line.append(" \(text)  ", .secondary)
    }
    return line
  }
}

/// The list of keys.
enum HelpText {
  static let keys: [(String, String)] = [
    ("up down j k", "select a row, scroll a detail"),
    ("pgup pgdn g G", "by pages, to the first, to the last"),
    ("space left right", "fold and unfold a group"),
    ("enter", "open the detail of a store"),
    ("esc", "back, or clear the filter"),
    ("/", "filter by path, request, status, freshness or error"),
    ("s S", "sort by the next column, reverse the order"),
    ("t", "tree or flat list"),
    ("r", "refetch: start a run"),
    ("i", "invalidate: mark as stale, and run where it is observed"),
    ("x", "cancel the runs in flight"),
    ("R", "reset to the initial state"),
    ("C", "clear: remove the store from its client"),
    ("o", "behave as if offline, and back (with a manual network observer)"),
    ("ctrl-L", "draw the screen again"),
    ("q", "quit"),
  ]

  static var lines: [StyledLine] {
    keys.map { key, text in
      var line = StyledLine("   \(key.fit(18))", .heading)
      line.append(text)
      return line
    }
  }
}
