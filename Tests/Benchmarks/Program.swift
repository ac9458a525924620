import Foundation

/// Measures the costs of the library as ratios to floors.
@main
enum Program {
  static func main() async {
    if let measurement = MemoryMeasurement(Array(CommandLine.arguments.dropFirst())) {
      return await runChildProcess(measurement)
    }
    let arguments: Arguments
    do throws(BadArguments) {
      arguments = try Arguments(CommandLine.arguments.dropFirst())
      try arguments.check()
    } catch {
      StandardStreams.error("benchmarks: \(error)\n\(Arguments.usage)\n")
      exit(Arguments.usageErrorCode)
    }
    if arguments.printsHelp { return StandardStreams.output(Arguments.helpText + "\n") }
    if arguments.printsList {
      return StandardStreams.output(Catalogue.all.map { $0.name + "\n" }.joined())
    }
    // `main` runs on the main actor, from which every task needs a change of threads.
    exit(await Task.detached { await Session(arguments).run() }.value)
  }

  private static func runChildProcess(_ measurement: MemoryMeasurement) async {
    do {
      StandardStreams.output("\(try await Task.detached { try await measurement.run() }.value)")
    } catch {
      StandardStreams.error("benchmarks: \(error)\n")
      exit(EXIT_FAILURE)
    }
  }
}

/// A run of the program: measures the selected cases and prints the tables.
struct Session {
  private let arguments: Arguments
  private let benchmarks: [Benchmark]

  init(_ arguments: Arguments) {
    self.arguments = arguments
    benchmarks = Catalogue.all.filter { arguments.selects($0.name) }
  }

  /// Runs the session, and returns the exit code.
  func run() async -> Int32 {
    precondition(#isolation == nil, "The figures are those of code off the main actor.")
    do {
      let figures = try await measure()
      let report = Report(figures, isQuick: arguments.isQuick)
      StandardStreams.output(report.text)
      if let file = arguments.jsonFile { try figures.write(to: file) }
      if let file = arguments.baselineFile { try figures.ratiosOnly.write(to: file) }
      guard let file = arguments.comparedFile else { return EXIT_SUCCESS }
      let comparison = Comparison(
        of: figures, with: try Figures(contentsOf: file), factor: arguments.factor)
      StandardStreams.output(comparison.text)
      return comparison.isOver && !arguments.isQuick ? EXIT_FAILURE : EXIT_SUCCESS
    } catch {
      StandardStreams.error("benchmarks: \(error)\n")
      return EXIT_FAILURE
    }
  }

  private func measure() async throws -> Figures {
    var figures = Figures()
    let plan = arguments.plan
    let total = benchmarks.reduce(0) { $0 + plan.sizes(of: $1).count }
    let progress = Progress(total: total)
    for benchmark in benchmarks {
      for size in plan.sizes(of: benchmark) {
        progress.begin(benchmark.label(of: size))
        figures.cases.append(try await benchmark.measure(size, plan))
      }
    }
    progress.end()
    return figures
  }
}
