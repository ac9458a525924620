import Foundation

/// What was measured of one case at one size.
struct Figure: Codable, Equatable {
  enum Unit: String, Codable {
    case seconds
    case bytes
  }

  let name: String
  /// Zero for a case without sizes.
  let size: Int
  /// The median of the ratios to the floor; `nil` without one.
  let ratio: Double?
  var unit: Unit?
  /// Of one operation.
  var median: Double?
  /// Half of the distance between the quartiles, as a part of the median.
  var spread: Double?
  var floor: Double?
  var floorSpread: Double?
}

/// What was measured, as it is written to a file.
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

  /// What another machine can be compared with.
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
struct Comparison {
  struct Line: Equatable {
    let label: String
    let earlier: Double
    let now: Double

    var quotient: Double { now / earlier }
  }

  let factor: Double
  private(set) var lines: [Line] = []

  init(of figures: Figures, with earlier: Figures, factor: Double) {
    self.factor = factor
    for figure in figures.cases {
      guard let now = figure.ratio, let before = earlier.figure(figure.name, figure.size)?.ratio,
        before > 0
      else { continue }
      let label = figure.size == 0 ? figure.name : "\(figure.name), \(figure.size)"
      lines.append(Line(label: label, earlier: before, now: now))
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
    return "\n" + table.text + "\(over) of \(lines.count) over a factor of \(factor)\n"
  }
}
