/// Renders the table of stores.
struct StoreTable {
  let model: InspectorModel
  let width: Int
  var glyphs = StyledLine.Glyphs()
  let now: Double
  /// The columns that the longest path takes.
  var longestPath = Int.max

  /// The widths of the columns; a width of 0 hides the column.
  struct Columns: Equatable {
    var path: Int
    var status = 9
    var age = 4
    var freshness = 5
    var subscribers = 4
    var awaiters = 5
    var runs = 4
    var error: Int

    /// Divides a width. A narrow terminal shows fewer columns.
    init(width: Int, longestPath: Int) {
      if width < 46 { (freshness, subscribers, awaiters, runs) = (0, 0, 0, 0) }
      if width < 62 { (subscribers, awaiters) = (0, 0) }
      let fixed =
        [status, age, freshness, subscribers, awaiters, runs].filter { $0 > 0 }
        .reduce(1) { $0 + $1 + 1 }
      let room = max(width - fixed, 8)
      let most = room < 36 ? room : room - max(room * 2 / 5, 14) - 2
      path = min(max(longestPath, 16), most)
      error = room < 36 ? 0 : room - path - 2
    }
  }

  var columns: Columns { Columns(width: width, longestPath: longestPath) }

  func heading(_ options: StoreTree.Options) -> StyledLine {
    let columns = columns
    func title(_ text: String, _ order: StoreTree.Order?) -> String {
      guard order == options.order, options.order != .path || options.isReversed else {
        return text
      }
      return text + (options.isReversed ? glyphs.ascending : glyphs.descending)
    }
    var line = StyledLine(" ")
    line.append(title("PATH", .path).fit(columns.path), .heading)
    let cells = [
      (title("STATUS", .status), columns.status, false), (title("AGE", .age), columns.age, true),
      ("FRESH", columns.freshness, false), (title("SUB", .subscribers), columns.subscribers, true),
      ("AWAIT", columns.awaiters, true), (title("RUN", .runs), columns.runs, true),
    ]
    for (text, width, isRight) in cells where width > 0 {
      line.append(" " + text.fit(width, isRight: isRight), .heading)
    }
    if columns.error > 0 { line.append("  LAST ERROR", .heading) }
    return line
  }

  /// Returns the rows that are visible.
  func rows(_ view: TerminalView, height: Int) -> [StyledLine] {
    let rows = view.tree.rows
    guard !rows.isEmpty else {
      let text = model.stores.isEmpty ? "There is no store yet." : "No store matches the filter."
      return [StyledLine("   \(text)", .secondary)]
    }
    return rows.indices.dropFirst(view.scroll).prefix(height).map { index in
      var line = self.line(rows[index], isSelected: index == view.selection)
      line.isReversed = index == view.selection
      return line.fit(width, ellipsis: glyphs.ellipsis)
    }
  }

  /// Returns a row of the table, without the marks of the selection.
  func line(_ row: StoreTree.Row, isSelected: Bool = false) -> StyledLine {
    let columns = columns
    let fold = row.canFold ? (row.isFolded ? glyphs.folded : glyphs.unfolded) : " "
    let indent = String(repeating: "  ", count: min(row.depth, 12))
    let label = "\(indent)\(fold) \(row.label.printable)"
    var line = StyledLine(isSelected ? ">" : " ")
    guard let store = row.store.flatMap({ model.stores[$0] }) else {
      let count = " (\(counted(row.descendants, "store")))"
      line.append(label.cut(to: columns.path, ellipsis: glyphs.ellipsis), .heading)
      if row.isFolded { line.append(count, .secondary) }
      return line
    }
    line.append(label.fit(columns.path, ellipsis: glyphs.ellipsis))
    append(store, columns, to: &line)
    return line
  }

  private func append(_ store: StoreRecord, _ columns: Columns, to line: inout StyledLine) {
    func cell(_ text: String, _ width: Int, _ style: StyledLine.Style = .plain) {
      if width > 0 { line.append(" " + text.fit(width, isRight: true), style) }
    }
    let status = "\(glyphs.sign(of: store.status)) \(store.status.rawValue)"
    line.append(" " + status.fit(columns.status), store.status.style)
    let numbers = store.numbers
    cell(store.lastResult.map { shortDuration(now - $0) } ?? glyphs.dash, columns.age)
    if columns.freshness > 0 {
      let (freshness, style) = glyphs.freshness(of: store)
      line.append(" " + freshness.fit(columns.freshness), style)
    }
    func style(_ number: Int) -> StyledLine.Style { number == 0 ? .secondary : .plain }
    cell("\(numbers.subscribers)", columns.subscribers, style(numbers.subscribers))
    cell("\(numbers.leases)", columns.awaiters, style(numbers.leases))
    cell("\(numbers.runs)", columns.runs)
    guard columns.error > 0, let error = store.error else { return }
    line.append("  " + error.printable.cut(to: columns.error, ellipsis: glyphs.ellipsis), .failure)
  }
}
