import Foundation

/// The options of the command line.
struct Arguments: Equatable {
  static let usageErrorCode: Int32 = 64
  static let usage =
    "usage: benchmarks [--quick] [--filter NAME]... [--json FILE] [--baseline FILE] "
    + "[--compare FILE [--factor NUMBER]] [--list]"

  static let helpText = """
    \(usage)

    Measures the costs of the library as ratios to floors. The floor of a case is the baseline that
    is measured beside it on the same machine, such as a bare task, a lock or a dictionary.

      --quick          measure briefly, to check that every case works; no ratio makes this fail
      --filter NAME    measure the cases whose names contain NAME; can be repeated
      --list           print the names of the cases and exit
      --json FILE      write all figures, times in seconds and memory in bytes
      --baseline FILE  write the ratios only, which can be compared between machines
      --compare FILE   compare the ratios with those of such a file; exit with 1 when one of them
                       has grown by more than the factor
      --factor NUMBER  the factor by which a ratio may grow; \(defaultFactor) unless given
      --help           print this and exit
    """

  static let defaultFactor = 1.5

  var isQuick = false
  var filters: [String] = []
  var jsonFile: String?
  var baselineFile: String?
  var comparedFile: String?
  var factor = defaultFactor
  var printsList = false
  var printsHelp = false

  /// Parses the arguments that follow the name of the program.
  init(_ arguments: some Sequence<String>) throws(BadArguments) {
    var given: Set<String> = []
    var rest = arguments.makeIterator()
    while let argument = rest.next() {
      if !given.insert(argument).inserted, argument != "--filter" {
        throw BadArguments("\(argument) is given twice")
      }
      func value(_ kind: String) throws(BadArguments) -> String {
        guard let value = rest.next(), !value.isEmpty, !value.hasPrefix("--") else {
          throw BadArguments("\(argument) needs \(kind)")
        }
        return value
      }
      switch argument {
      case "--quick": isQuick = true
      case "--filter": filters.append(try value("a name"))
      case "--list": printsList = true
      case "--json": jsonFile = try value("a file")
      case "--baseline": baselineFile = try value("a file")
      case "--compare": comparedFile = try value("a file")
      case "--factor": factor = try Self.factor(try value("a number"))
      case "--help", "-h": printsHelp = true
      default: throw BadArguments("'\(argument)' is not an option of this program")
      }
    }
    if given.contains("--factor"), comparedFile == nil {
      throw BadArguments("--factor needs --compare")
    }
  }

  private static func factor(_ text: String) throws(BadArguments) -> Double {
    guard let factor = Double(text), factor.isFinite, factor > 0 else {
      throw BadArguments("'\(text)' is not a positive number")
    }
    return factor
  }

  var plan: Plan { isQuick ? .quick : .full }

  /// Returns whether the filters select the case with a name.
  func selects(_ name: String) -> Bool {
    filters.isEmpty || filters.contains { name.contains($0) }
  }
}

extension Arguments {
  /// Throws, before anything is measured, if a filter selects no case or if a file cannot be used.
  func check() throws(BadArguments) {
    for filter in filters where !Catalogue.all.contains(where: { $0.name.contains(filter) }) {
      throw BadArguments("no case has '\(filter)' in its name; --list prints the names")
    }
    if let comparedFile { try checkComparable(comparedFile) }
    for file in [jsonFile, baselineFile].compactMap({ $0 }) { try checkWritable(file) }
  }

  private func checkComparable(_ file: String) throws(BadArguments) {
    let earlier: Figures
    do { earlier = try Figures(contentsOf: file) } catch {
      throw BadArguments("cannot compare with \(file): \(error)")
    }
    let isComparable = Catalogue.all.contains { benchmark in
      selects(benchmark.name)
        && plan.sizes(of: benchmark).contains { earlier.figure(benchmark.name, $0)?.ratio != nil }
    }
    guard isComparable else {
      throw BadArguments("\(file) has no ratio of a selected case")
    }
  }

  private func checkWritable(_ file: String) throws(BadArguments) {
    let url = URL(filePath: file)
    var isFolder: ObjCBool = false
    let exists = FileManager.default.fileExists(atPath: file, isDirectory: &isFolder)
    if isFolder.boolValue { throw BadArguments("\(file) is a folder") }
    let target = exists ? url : url.deletingLastPathComponent()
    guard FileManager.default.isWritableFile(atPath: target.path) else {
      throw BadArguments("cannot write to \(file)")
    }
  }
}

/// An error that describes what is wrong with a command line.
struct BadArguments: Error, Equatable, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
