import Foundation
import Glibc

/// This program, started again as a process of its own.
struct ChildProgram {
  private let process = Process()
  private let output = Pipe()

  /// Starts the program with arguments.
  init(_ arguments: [String]) throws {
    process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = arguments
    process.standardOutput = output
    try process.run()
  }

  /// The lines that the program prints, until it ends or closes its output.
  var lines: AsyncStream<String> {
    let (lines, continuation) = AsyncStream<String>.makeStream()
    let reader = output.fileHandleForReading
    // A read waits for the next line, which no task may do.
    Thread.detachNewThread {
      var rest = Data()
      while case let data = reader.availableData, !data.isEmpty {
        rest += data
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
          continuation.yield(String(decoding: rest[..<end], as: UTF8.self))
          rest = rest[(end + 1)...]
        }
      }
      continuation.finish()
    }
    return lines
  }

  /// Ends the program at once, wherever it is.
  func kill() {
    _ = Glibc.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// Waits for the program, which has printed all of its lines, and returns whether it was successful.
  func end() -> Bool {
    process.waitUntilExit()
    return process.terminationStatus == EXIT_SUCCESS
  }
}
