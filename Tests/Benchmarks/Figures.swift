import Foundation

/// The figures of one case at one size.
struct Figure: Codable, Equatable {
  enum Unit: String, Codable {
    case seconds
    case bytes
  }

  let name: String
  /// Zero for a case without sizes.
  let size: Int
  /// The median of the ratios to the floor; `nil` for a case without one.
  let ratio: Double?
  var unit: Unit?
  /// The median of the cost of one operation, in `unit`.
  var median: Double?
  /// Half of the distance between the quartiles, as a fraction of the median.
  var spread: Double?
  /// The median of the cost of one operation of the floor, in `unit`.
  var floor: Double?
  var floorSpread: Double?
}

/// The figures of all cases, as a file stores them.
struct Figures: Codable, Equatable {
  var cases: [Figure] = []

  init() {}

  init(contentsOf file: String) throws {
    self = try JSONDecoder().decode(
      Figures.self, from: Data(contentsOf: URL(filePath: file)))
  }

  func write(to file: String) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    try (encoder.encode(self) + Data("\n".utf8)).write(to: URL(filePath: file))
  }

  /// The ratios without the costs, which can be compared between machines.
  var ratiosOnly: Figures {
    var figures = Figures()
    for figure in cases {
      guard let ratio = figure.ratio, ratio.isFinite else { continue }
      let rounded = (ratio * 1000).rounded() / 1000
      figures.cases.append(Figure(name: figure.name, size: figure.size, ratio: rounded))
    }
    return figures
  }

  func figure(_ name: String, _ size: Int) -> Figure? {
    cases.first { $0.name == name && $0.size == size }
  }
}

/// The ratios of a run beside those of a file.
///
/// The cases of the two may differ. A case whose floor changes gets another name, because its ratios
/// cannot be compared.
struct Comparison {
  struct Line: Equatable {
    let label: String
    let earlier: Double
    let now: Double

    var quotient: Double { now / earlier }
  }

  let factor: Double
  private(set) var lines: [Line] = []
  /// The labels of the ratios that the file does not have.
  private(set) var missing: [String] = []

  init(of figures: Figures, with earlier: Figures, factor: Double) {
    self.factor = factor
    for figure in figures.cases {
      guard let now = figure.ratio else { continue }
      let label = figure.size == 0 ? figure.name : "\(figure.name), \(figure.size)"
      if let before = earlier.figure(figure.name, figure.size)?.ratio, before > 0 {
        lines.append(Line(label: label, earlier: before, now: now))
      } else {
        missing.append(label)
      }
    }
  }

  var isOver: Bool { lines.contains { $0.quotient > factor } }

  var text: String {
    var table = Table(["compared", "ratio then", "ratio now", "now / then", ""])
    for line in lines {
      table.append([
        line.label, Format.ratio(line.earlier), Format.ratio(line.now),
        Format.ratio(line.quotient), line.quotient > factor ? "over \(factor)" : "",
      ])
    }
    let over = lines.count { $0.quotient > factor }
    let summary = "\(over) of \(lines.count) over a factor of \(factor)\n"
    let remarks = missing.map { "not in the file: \($0)\n" }.joined()
    return "\n" + table.text + remarks + summary
  }
}
