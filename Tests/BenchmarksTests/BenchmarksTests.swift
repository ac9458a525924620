import Foundation
import Testing

@testable import benchmarks

@Suite("Benchmarks")
struct BenchmarksTests {
  @Test(
    "A bad command line is refused with a description of what is wrong",
    arguments: [
      (["--fast"], "'--fast' is not an option of this program"),
      (["--json"], "--json needs a file"),
      (["--json", "--quick"], "--json needs a file"),
      (["--quick", "--quick"], "--quick is given twice"),
      (["--factor", "2"], "--factor needs --compare"),
      (["--compare", "a", "--factor", "-1"], "'-1' is not a positive number"),
      (["--compare", "a", "--factor", "fast"], "'fast' is not a positive number"),
    ])
  func refused(_ arguments: [String], _ message: String) {
    #expect(throws: BadArguments(message)) { try Arguments(arguments) }
  }

  @Test(
    "An unknown case and an unusable file are refused before anything is measured")
  func checked() throws {
    #expect(throws: BadArguments.self) { try Arguments(["--filter", "no such case"]).check() }
    #expect(throws: BadArguments.self) { try Arguments(["--compare", "/no/such/file"]).check() }
    #expect(throws: BadArguments.self) {
      try Arguments(["--json", "/no/such/folder/file"]).check()
    }
    try Arguments(["--quick", "--filter", "fetch", "--filter", "read"]).check()
  }

  @Test("A file to compare with must have a ratio of a selected case")
  func nothingToCompare() throws {
    let file = URL.temporaryDirectory.appending(path: "\(UUID()).json").path
    defer { try? FileManager.default.removeItem(atPath: file) }
    let refusal = BadArguments("\(file) has no ratio of a selected case")
    try figures(["read status": 2]).write(to: file)
    try Arguments(["--compare", file]).check()
    try Arguments(["--compare", file, "--filter", "read"]).check()
    #expect(throws: refusal) {
      try Arguments(["--compare", file, "--filter", "fetch"]).check()
    }
    // A size that `--quick` does not measure.
    var large = Figures()
    large.cases = [Figure(name: "mutate", size: 10_000, ratio: 2)]
    try large.write(to: file)
    try Arguments(["--compare", file]).check()
    #expect(throws: refusal) { try Arguments(["--compare", file, "--quick"]).check() }
  }

  @Test("A comparison is over its factor if one of the ratios is, and only then")
  func compared() {
    let earlier = figures(["a": 2, "b": 1])
    #expect(!Comparison(of: figures(["a": 2.9, "b": 1]), with: earlier, factor: 1.5).isOver)
    #expect(Comparison(of: figures(["a": 2, "b": 1.6]), with: earlier, factor: 1.5).isOver)
    #expect(!Comparison(of: figures(["a": 2, "b": 1.6]), with: earlier, factor: 2).isOver)
  }

  @Test("A ratio that the file does not have is listed, and is not over the factor")
  func comparedWithoutRatio() {
    let comparison = Comparison(of: figures(["a": 2, "c": 9]), with: figures(["a": 2]), factor: 2)
    #expect(!comparison.isOver)
    #expect(comparison.lines.map(\.label) == ["a"])
    #expect(comparison.missing == ["c"])
    #expect(comparison.text.contains("not in the file: c\n"))
  }

  @Test("A baseline file has the ratios only")
  func baseline() {
    let full = figures(["a": 2.00049])
    #expect(full.ratiosOnly.cases == [Figure(name: "a", size: 0, ratio: 2)])
  }

  @Test("The exponent is that of the power of the size that fits the costs")
  func exponents() throws {
    let sizes = [10, 1_000, 10_000]
    let flat = try #require(Statistics.exponent(of: sizes.map { ($0, 3) }))
    let square = try #require(
      Statistics.exponent(of: sizes.map { ($0, Double($0) * Double($0)) }))
    #expect(abs(flat) < 1e-9)
    #expect(abs(square - 2) < 1e-9)
    #expect(Statistics.exponent(of: [(1, 1), (10, 10)]) == nil)
  }

  @Test("The spread is half of the distance between the quartiles, as a fraction of the median")
  func spread() {
    #expect(Statistics.median(of: [5, 1, 3]) == 3)
    #expect(Statistics.spread(of: [1, 2, 4, 6, 7]) == 0.5)
  }

  @Test("Every case has a unique name")
  func names() {
    #expect(Set(Catalogue.all.map(\.name)).count == Catalogue.all.count)
  }

  @Test("A case is measured beside its floor")
  func measured() async throws {
    let benchmark = Benchmark(name: "a", floor: "b") { _ in
      Pair(subject: Work(count: 2) { _ in 6 }, floor: Work(count: 1) { _ in 2 })
    }
    let figure = try await benchmark.measure(0, .full)
    #expect(figure.median == 3)
    #expect(figure.floor == 2)
    #expect(figure.ratio == 1.5)
    #expect(Plan.full.slowRepetitions >= 7)
  }

  @Test("A limit can differ at a size")
  func limits() {
    let benchmark = Benchmark(name: "a", floor: "b", limit: 2, limitsBySize: [1: 4]) { _ in
      Pair(subject: Work(count: 1) { _ in 1 })
    }
    #expect(benchmark.limit(at: 1) == 4)
    #expect(benchmark.limit(at: 10) == 2)
  }

  @Test("A ratio over the limit of its size is marked")
  func overLimit() throws {
    var figures = Figures()
    figures.cases = [1, 10].map {
      Figure(name: "write, per subscriber", size: $0, ratio: 3, median: 1)
    }
    let rows = Report(figures, isQuick: false).text.split(separator: "\n")
      .filter { $0.hasPrefix("write, per subscriber") }
    #expect(rows.map { $0.hasSuffix("over") } == [false, true])
  }

  @Test(
    "An exponent is over if it exceeds the expected one and that of the floor",
    arguments: [
      (Benchmark.Growth.flat, 0.1, nil, false), (.flat, 0.3, nil, true), (.flat, 0.3, 0.2, false),
      (.linear, 1.1, 0.5, false), (.linear, 1.3, 0.5, true),
    ] as [(Benchmark.Growth, Double, Double?, Bool)])
  func growth(_ growth: Benchmark.Growth, _ exponent: Double, _ floor: Double?, _ isOver: Bool) {
    #expect(growth.isExceeded(by: exponent, floor: floor) == isOver)
  }

  @Test("A measurement of memory is passed to a child process by its arguments")
  func memoryMeasurement() {
    let measurement = MemoryMeasurement("bytes", 100, .floor)
    #expect(MemoryMeasurement(measurement.arguments) == measurement)
    #expect(MemoryMeasurement(["--quick"]) == nil)
    #expect(MemoryMeasurement(Array(measurement.arguments.dropLast()) + ["else"]) == nil)
  }

  private func figures(_ ratios: [String: Double]) -> Figures {
    var figures = Figures()
    figures.cases = ratios.sorted { $0.key < $1.key }.map {
      Figure(name: $0.key, size: 0, ratio: $0.value, median: 1)
    }
    return figures
  }
}
