import Foundation
import Testing

@testable import benchmarks

@Suite("Benchmarks")
struct BenchmarksTests {
  @Test(
    "A command line that makes no sense is refused with what is wrong with it",
    arguments: [
      (["--fast"], "'--fast' is not an argument of this program"),
      (["--json"], "--json needs a file"),
      (["--json", "--quick"], "--json needs a file"),
      (["--quick", "--quick"], "--quick is there twice"),
      (["--factor", "2"], "--factor is of use with --compare only"),
      (["--compare", "a", "--factor", "-1"], "'-1' is not a positive number"),
      (["--compare", "a", "--factor", "fast"], "'fast' is not a positive number"),
    ])
  func refused(_ arguments: [String], _ message: String) {
    #expect(throws: BadArguments(message)) { try Arguments(arguments) }
  }

  @Test(
    "What a command line asks for in vain is found before anything is measured")
  func checked() throws {
    #expect(throws: BadArguments.self) { try Arguments(["--filter", "no such case"]).check() }
    #expect(throws: BadArguments.self) { try Arguments(["--compare", "/no/such/file"]).check() }
    #expect(throws: BadArguments.self) {
      try Arguments(["--json", "/no/such/folder/file"]).check()
    }
    try Arguments(["--quick", "--filter", "fetch", "--filter", "read"]).check()
  }

  @Test("A file to compare with needs a ratio of a case that is measured")
  func nothingToCompare() throws {
    let file = URL.temporaryDirectory.appending(path: "\(UUID()).json").path
    defer { try? FileManager.default.removeItem(atPath: file) }
    let refusal = BadArguments("\(file) has no ratio of a case that is to be measured")
    try figures(["read status": 2]).write(to: file)
    try Arguments(["--compare", file]).check()
    try Arguments(["--compare", file, "--filter", "read"]).check()
    #expect(throws: refusal) {
      try Arguments(["--compare", file, "--filter", "fetch"]).check()
    }
    // A size that a short form does not measure.
    var large = Figures()
    large.cases = [Figure(name: "mutate", size: 10_000, ratio: 2)]
    try large.write(to: file)
    try Arguments(["--compare", file]).check()
    #expect(throws: refusal) { try Arguments(["--compare", file, "--quick"]).check() }
  }

  @Test("A comparison is over its factor when one of the ratios is, and only then")
  func compared() {
    let earlier = figures(["a": 2, "b": 1])
    #expect(!Comparison(of: figures(["a": 2.9, "b": 1]), with: earlier, factor: 1.5).isOver)
    #expect(Comparison(of: figures(["a": 2, "b": 1.6]), with: earlier, factor: 1.5).isOver)
    #expect(!Comparison(of: figures(["a": 2, "b": 1.6]), with: earlier, factor: 2).isOver)
    #expect(!Comparison(of: figures(["c": 9]), with: earlier, factor: 2).isOver)
  }

  @Test("The ratios alone are what a baseline keeps")
  func baseline() {
    let full = figures(["a": 2.00049])
    #expect(full.ratiosOnly.cases == [Figure(name: "a", size: 0, ratio: 2)])
  }

  @Test("The exponent is that of the power of the size that the costs follow")
  func exponents() throws {
    let sizes = [10, 1_000, 10_000]
    let flat = try #require(Statistics.exponent(of: sizes.map { ($0, 3) }))
    let square = try #require(
      Statistics.exponent(of: sizes.map { ($0, Double($0) * Double($0)) }))
    #expect(abs(flat) < 1e-9)
    #expect(abs(square - 2) < 1e-9)
    #expect(Statistics.exponent(of: [(1, 1), (10, 10)]) == nil)
  }

  @Test("The spread is half of the distance between the quartiles, as a part of the median")
  func spread() {
    #expect(Statistics.median(of: [5, 1, 3]) == 3)
    #expect(Statistics.spread(of: [1, 2, 4, 6, 7]) == 0.5)
  }

  @Test("Every case has a name of its own")
  func names() {
    #expect(Set(Catalogue.all.map(\.name)).count == Catalogue.all.count)
  }

  @Test("A case is measured beside its floor, as often as planned")
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

  private func figures(_ ratios: [String: Double]) -> Figures {
    var figures = Figures()
    figures.cases = ratios.sorted { $0.key < $1.key }.map {
      Figure(name: $0.key, size: 0, ratio: $0.value, median: 1)
    }
    return figures
  }
}
