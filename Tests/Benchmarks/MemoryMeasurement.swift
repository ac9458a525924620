import Foundation

/// A measurement of memory, which runs in a child process.
///
/// The heap of a process keeps what earlier cases have freed, and then grows by less than a case
/// allocates. So the program starts itself for each measurement, with the arguments of this type.
struct MemoryMeasurement: Equatable {
  /// A work of a case.
  enum Part: String {
    case subject
    case floor
  }

  private static let option = "--measure-memory"

  let name: String
  let size: Int
  let part: Part

  init(_ name: String, _ size: Int, _ part: Part) {
    self.name = name
    self.size = size
    self.part = part
  }

  /// Creates the measurement for which this process was started; `nil` if it is no child process.
  init?(_ arguments: [String]) {
    guard arguments.count == 4, arguments[0] == Self.option, let size = Int(arguments[2]),
      let part = Part(rawValue: arguments[3])
    else { return nil }
    self.init(arguments[1], size, part)
  }

  var arguments: [String] { [Self.option, name, "\(size)", part.rawValue] }

  /// Returns the bytes for each operation, which a child process measures.
  func runInChildProcess() throws -> Double {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = arguments
    process.standardOutput = output
    try process.run()
    let text = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    guard process.terminationStatus == EXIT_SUCCESS,
      let bytes = Double(String(decoding: text, as: UTF8.self))
    else { throw MemoryMeasurementError(name: name, status: process.terminationStatus) }
    return bytes
  }

  /// Returns the bytes for each operation in this process.
  func run() async throws -> Double {
    guard let benchmark = Catalogue.all.first(where: { $0.name == name }) else {
      throw MemoryMeasurementError(name: name, status: EXIT_FAILURE)
    }
    let pair = try await benchmark.prepare(size)
    guard let work = part == .subject ? pair.subject : pair.floor, let count = work.count else {
      throw MemoryMeasurementError(name: name, status: EXIT_FAILURE)
    }
    // Code that runs first, and types that are used first, occupy memory as well.
    _ = try await work.run(min(count, 1_000))
    return try await work.run(count) / Double(count)
  }
}

/// An error of a child process that measures memory.
struct MemoryMeasurementError: Error, CustomStringConvertible {
  let name: String
  let status: Int32

  var description: String { "the child process that measures '\(name)' ended with \(status)" }
}
