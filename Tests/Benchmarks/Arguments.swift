import Foundation

/// What the command line asks for.
struct Arguments: Equatable {
  static let usageErrorCode: Int32 = 64
  static let usage =
    "usage: benchmarks [--quick] [--filter NAME]... [--json FILE] [--baseline FILE] "
    + "[--compare FILE [--factor NUMBER]] [--list]"

  static let helpText = """
    \(usage)

    Measures what the library costs beside floors in the same process.

      --quick          a short form, to see that everything works; no timing makes it fail
      --filter NAME    run the cases whose names contain NAME; may be there several times
      --list           print the names of the cases and exit
      --json FILE      write all figures, times in seconds and memory in bytes
      --baseline FILE  write the ratios alone, which are what other machines can be compared with
      --compare FILE   print what the ratios are to those of such a file, and exit with 1 when one
                       of them is over the factor
      --factor NUMBER  how many times the ratio of FILE a ratio may be; \(defaultFactor) unless given
      --help           print this and exit
    """

  static let defaultFactor = 1.5

  var isQuick = false
  var filters: [String] = []
  var jsonFile: String?
  var baselineFile: String?
  var comparedFile: String?
  var factor = defaultFactor
  var wantsList = false
  var wantsHelp = false

  /// Reads the arguments that follow the name of the program.
  init(_ arguments: some Sequence<String>) throws(BadArguments) {
    var given: Set<String> = []
    var rest = arguments.makeIterator()
    while let argument = rest.next() {
      if !given.insert(argument).inserted, argument != "--filter" {
        throw BadArguments("\(argument) is there twice")
      }
      func value(_ what: String) throws(BadArguments) -> String {
        guard let value = rest.next(), !value.isEmpty, !value.hasPrefix("--") else {
          throw BadArguments("\(argument) needs \(what)")
        }
        return value
      }
      switch argument {
      case "--quick": isQuick = true
      case "--filter": filters.append(try value("a name"))
      case "--list": wantsList = true
      case "--json": jsonFile = try value("a file")
      case "--baseline": baselineFile = try value("a file")
      case "--compare": comparedFile = try value("a file")
      case "--factor": factor = try Self.factor(try value("a number"))
      case "--help", "-h": wantsHelp = true
      default: throw BadArguments("'\(argument)' is not an argument of this program")
      }
    }
    if given.contains("--factor"), comparedFile == nil {
      throw BadArguments("--factor is of use with --compare only")
    }
  }

  private static func factor(_ text: String) throws(BadArguments) -> Double {
    guard let factor = Double(text), factor.isFinite, factor > 0 else {
      throw BadArguments("'\(text)' is not a positive number")
    }
    return factor
  }

  /// Finds before anything is measured what would be in vain afterwards.
  func check() throws(BadArguments) {
    for filter in filters where !Catalogue.all.contains(where: { $0.name.contains(filter) }) {
      throw BadArguments("no case has '\(filter)' in its name; --list prints them")
    }
    if let comparedFile {
      let earlier: Figures
      do { earlier = try Figures(contentsOf: comparedFile) } catch {
        throw BadArguments("cannot compare with \(comparedFile): \(error)")
      }
      let isOfUse = Catalogue.all.contains { benchmark in
        accepts(benchmark.name)
          && plan.sizes(of: benchmark).contains { earlier.figure(benchmark.name, $0)?.ratio != nil }
      }
      if !isOfUse {
        throw BadArguments("\(comparedFile) has no ratio of a case that is to be measured")
      }
    }
    for file in [jsonFile, baselineFile].compactMap({ $0 }) {
      let url = URL(filePath: file)
      let target =
        FileManager.default.fileExists(atPath: file)
        ? url : url.deletingLastPathComponent()
      var isFolder: ObjCBool = false
      if FileManager.default.fileExists(atPath: file, isDirectory: &isFolder), isFolder.boolValue {
        throw BadArguments("\(file) is a folder")
      }
      guard FileManager.default.isWritableFile(atPath: target.path) else {
        throw BadArguments("cannot write to \(file)")
      }
    }
  }

  var plan: Plan { isQuick ? .quick : .full }

  /// Whether the case of a name is asked for.
  func accepts(_ name: String) -> Bool {
    filters.isEmpty || filters.contains { name.contains($0) }
  }
}

/// Tells what is wrong with a command line.
struct BadArguments: Error, Equatable, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
