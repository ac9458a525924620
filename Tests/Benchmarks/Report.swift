import Foundation

/// The tables that are printed at the end of a run.
struct Report {
  private let figures: Figures
  private let isQuick: Bool

  init(_ figures: Figures, isQuick: Bool) {
    self.figures = figures
    self.isQuick = isQuick
  }

  var text: String {
    "measured off the main actor\(isQuick ? ", briefly" : "")\n\n" + costs + growth
  }

  private var costs: String {
    var table = Table([
      "case", "size", "median", "±", "floor", "median", "±", "ratio", "limit", "",
    ])
    for benchmark in Catalogue.all {
      for figure in figures.cases where figure.name == benchmark.name {
        table.append(row(of: figure, benchmark))
      }
    }
    return table.text
  }

  private func row(of figure: Figure, _ benchmark: Benchmark) -> [String] {
    let unit = figure.unit ?? .seconds
    let ratioLimit = benchmark.limit(at: figure.size)
    var limit = ratioLimit.map(Format.ratio) ?? ""
    var isOver = ratioLimit.map { (figure.ratio ?? 0) > $0 } ?? false
    if let bytes = benchmark.byteLimit {
      limit = Format.cost(bytes, .bytes)
      isOver = (figure.median ?? 0) > bytes
    }
    return [
      benchmark.name, figure.size == 0 && benchmark.sizes.isEmpty ? "" : "\(figure.size)",
      figure.median.map { Format.cost($0, unit) } ?? "",
      figure.spread.map(Format.percent) ?? "", benchmark.floor,
      figure.floor.map { Format.cost($0, unit) } ?? "",
      figure.floorSpread.map(Format.percent) ?? "", figure.ratio.map(Format.ratio) ?? "", limit,
      isOver && !isQuick ? "over" : "",
    ]
  }

  /// The exponents of the powers of the size that fit the costs best.
  private var growth: String {
    var table = Table(["growth", "sizes", "exponent", "floor", "expected", ""])
    var isEmpty = true
    for benchmark in Catalogue.all {
      guard let growth = benchmark.growth else { continue }
      let figures = figures.cases.filter { $0.name == benchmark.name }
      let exponent = Statistics.exponent(
        of: figures.compactMap { figure in figure.median.map { (figure.size, $0) } })
      let floor = Statistics.exponent(
        of: figures.compactMap { figure in figure.floor.map { (figure.size, $0) } })
      guard let exponent else { continue }
      isEmpty = false
      table.append([
        benchmark.name, figures.map { "\($0.size)" }.joined(separator: ", "),
        Format.exponent(exponent), floor.map(Format.exponent) ?? "", growth.rawValue,
        growth.isExceeded(by: exponent, floor: floor) ? "over" : "",
      ])
    }
    return isEmpty ? "" : "\n" + table.text
  }
}

extension Benchmark.Growth {
  /// Returns whether a cost grows faster than expected, and faster than its floor.
  ///
  /// Caches that larger sizes do not fit into raise both exponents.
  func isExceeded(by exponent: Double, floor: Double?) -> Bool {
    exponent > max(self.exponent, floor ?? 0) + 0.2
  }
}

/// A table of text: names are aligned on the left, and numbers on the right.
struct Table {
  private var rows: [[String]]

  init(_ header: [String]) {
    rows = [header]
  }

  mutating func append(_ row: [String]) { rows.append(row) }

  var text: String {
    let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
    let isText = rows[0].indices.map { column in
      rows.dropFirst().contains { $0[column].contains { $0.isLetter } && $0[column].count > 8 }
    }
    let lines = rows.map { row in
      row.indices.map { column in
        let padding = String(repeating: " ", count: widths[column] - row[column].count)
        return column == 0 || isText[column] ? row[column] + padding : padding + row[column]
      }.joined(separator: "  ")
    }
    return lines.map { $0.trimmingSuffix { $0 == " " } + "\n" }.joined()
  }
}

/// The formats of numbers.
enum Format {
  static func cost(_ value: Double, _ unit: Figure.Unit) -> String {
    switch unit {
    case .bytes: return String(format: "%.0f B", value)
    case .seconds:
      switch abs(value) {
      case ..<1e-6: return String(format: "%.1f ns", value * 1e9)
      case ..<1e-3: return String(format: "%.2f µs", value * 1e6)
      default: return String(format: "%.2f ms", value * 1e3)
      }
    }
  }

  static func ratio(_ value: Double) -> String { String(format: "%.2f", value) }
  static func exponent(_ value: Double) -> String { String(format: "%.2f", value) }
  static func percent(_ value: Double) -> String { String(format: "%.0f %%", value * 100) }
}

extension String {
  fileprivate func trimmingSuffix(while isTrimmed: (Character) -> Bool) -> String {
    var text = self
    while let last = text.last, isTrimmed(last) { text.removeLast() }
    return text
  }
}
