/// Renders the detail of one store.
struct DetailText {
  let model: InspectorModel
  let store: Int
  let width: Int
  var glyphs = StyledLine.Glyphs()
  let now: Double

  private var record: StoreRecord? {
    // The detail comes with a message of its own, later than the newest state.
    model.stores[store] ?? watched?.store
  }

  private var watched: StoreDetail? { model.detail.flatMap { $0.store.id == store ? $0 : nil } }

  var heading: StyledLine {
    var line = StyledLine(" \(record?.name ?? "A store that was removed")", .heading)
    guard let record else { return line }
    line.append("  \(record.request)\(glyphs.bullet)\(record.kind)", .secondary)
    // The last detail of a removed store stays on the screen.
    if model.stores[store] == nil {
      line.append("\(glyphs.bullet)no longer in its client", .failure)
    }
    return line
  }

  func lines() -> [StyledLine] {
    guard let record else {
      return [StyledLine("   The store is no longer in its client.", .secondary)]
    }
    var lines = [statusLine(record), numbersLine(record)]
    if let error = record.error {
      lines.append(StyledLine("   \(error)", .failure))
    }
    lines += section("Value", text(of: watched?.store.value ?? record.value))
    if watched?.isTruncated == true {
      lines.append(StyledLine("   \(glyphs.ellipsis) truncated", .secondary))
    }
    lines += runLines
    lines += links(record)
    if let watched {
      let longest = watched.rules.map(\.name.columns).max() ?? 0
      lines += section(
        "Rules",
        watched.rules.map { rule in
          var line = StyledLine("   \(rule.name.printable.fit(min(longest, 30)))  ", .secondary)
          line.append(rule.value)
          return line
        })
      lines += section("Calls", calls(watched.calls))
    }
    return lines
  }

  private func section(_ title: String, _ lines: [StyledLine]) -> [StyledLine] {
    lines.isEmpty ? [] : [StyledLine(" \(title)", .heading)] + lines
  }

  private func text(of value: String) -> [StyledLine] {
    let text = value.isEmpty ? glyphs.dash : value
    return text.wrapped(to: width - 4).map { StyledLine("   \($0)") }
  }

  private func statusLine(_ record: StoreRecord) -> StyledLine {
    let status = "\(glyphs.sign(of: record.status)) \(record.status.rawValue)"
    var line = StyledLine("   \(status)", record.status.style)
    if let last = record.lastResult {
      let (freshness, style) = glyphs.freshness(of: record)
      line.append("  \(freshness)", style)
      let age = shortDuration(now - last)
      line.append("  last result \(age == "now" ? "now" : "\(age) ago")")
    }
    let numbers = record.numbers
    if numbers.edits > 0 {
      line.append("  \(counted(numbers.edits, "optimistic edit"))", .paused)
    }
    if numbers.queued > 0 { line.append("  \(counted(numbers.queued, "call")) in queue", .paused) }
    if let pages = watched?.pages { line.append("  \(counted(pages, "page"))") }
    return line
  }

  private func numbersLine(_ record: StoreRecord) -> StyledLine {
    let numbers = record.numbers
    let parts = [
      counted(numbers.subscribers, "subscriber"), counted(numbers.leases, "awaiter"),
      "\(counted(numbers.runs, "run")) in flight", counted(numbers.valueUpdates, "value"),
      counted(numbers.errorUpdates, "error"),
      counted(model.timelines[store]?.hits ?? 0, "hit"),
    ]
    return StyledLine("   " + parts.joined(separator: glyphs.bullet), .secondary)
  }

  private func links(_ record: StoreRecord) -> [StyledLine] {
    func list(_ ids: [Int]) -> [StyledLine] {
      ids.map { id in
        let store = model.stores[id]
        let sign = store.map { glyphs.sign(of: $0.status) } ?? " "
        var line = StyledLine("   \(sign) ", store?.status.style ?? .secondary)
        line.append(store?.name ?? "a store that was removed")
        return line
      }
    }
    return section("Reads", list(record.links.reads))
      + section("Read by", list(record.links.readBy))
  }

  private func calls(_ calls: [StoreDetail.Call]) -> [StyledLine] {
    calls.suffix(20).reversed().map { call in
      let status = StoreRecord.Status(rawValue: call.status)
      var line = StyledLine("   \(call.status.printable.fit(9))  ", status?.style ?? .plain)
      line.append(call.arguments)
      return line
    }
  }

  /// The timeline: a bar for each run, the newest first.
  private var runLines: [StyledLine] {
    let runs = (model.timelines[store]?.runs ?? []).suffix(12).reversed()
    guard let longest = runs.map({ $0.duration(now: now) }).max() else { return [] }
    let bar = RunBar(width: width < 100 ? 20 : 40, longest: longest, glyphs: glyphs, now: now)
    let legend =
      "\(glyphs.bar(of: .working)) attempt  \(glyphs.bar(of: .waiting)) wait  "
      + "\(glyphs.bar(of: .paused)) pause"
    var title = StyledLine(" Runs".fit(28), .heading)
    title.append(legend, .secondary)
    return [title] + runs.map { bar.line($0) }
  }
}

/// Renders a run as a bar with its phases.
struct RunBar {
  let width: Int
  /// The duration in seconds that takes the whole width.
  let longest: Double
  var glyphs = StyledLine.Glyphs()
  let now: Double

  func line(_ run: RunRecord) -> StyledLine {
    let status: StoreRecord.Status =
      switch run.outcome {
      case "success": .success
      case "failure": .failure
      case "cancelled": .paused
      default: run.ended == nil ? .loading : .idle
      }
    let isCancelled = run.outcome == "cancelled"
    let word = isCancelled ? "cancelled" : run.ended == nil ? "running" : status.rawValue
    let style = isCancelled ? .secondary : status.style
    var line = StyledLine("   \("#\(run.number)".fit(5)) ")
    line.append("\(word.fit(9)) ", style)
    line.append(exactDuration(run.duration(now: now)).fit(7, isRight: true) + "  ")
    line.append(bar(run), style)
    line.append("  \(run.notes(separator: glyphs.bullet))", .secondary)
    return line
  }

  /// Returns the bar in exactly `width` columns.
  func bar(_ run: RunRecord) -> String {
    let end = run.ended ?? now
    let used = longest > 0 ? max(Int((end - run.started) / longest * Double(width)), 1) : 1
    let step = (end - run.started) / Double(used)
    let cells = (0..<min(used, width)).map { index -> String in
      let time = run.started + (Double(index) + 0.5) * step
      let phase = run.phases.last { $0.begin <= time } ?? run.phases.first
      return glyphs.bar(of: phase?.kind ?? .working)
    }
    return cells.joined().fit(width)
  }
}
