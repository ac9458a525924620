import Foundation
import Glibc
import Operation
import Testing

/// A server that deduplicates calls by their keys, and the programs that it serves in order.
private struct RestartedPrograms {
  let directory = NSTemporaryDirectory() + "/swift-operation-\(UUID().uuidString)"
  var random = SystemRandomNumberGenerator()
  /// The values that the server has returned.
  var values: Set<String> = []
  /// The changes that have arrived, in order, and their keys.
  var changes: [Int] = []
  var keys: [Int: String] = [:]
  /// The changes that a program has requested, and those whose call has returned.
  var calls: Set<Int> = []
  var returned: Set<Int> = []
  /// The violations that were found.
  var problems: [String] = []
  var loadCount = 0
  var resumeCount = 0

  /// Serves a program until it is killed after some lines, or has ended.
  mutating func serve(_ child: SignalChildProcess, first: Int, lines limit: Int) throws {
    var count = 0
    while count < limit, let line = try child.line() {
      count += 1
      let words = line.split(separator: " ").map(String.init)
      switch (words.first, words.count) {
      case ("fetch", 2):
        let value = "value-\(values.count)"
        values.insert(value)
        child.reply("\(words[1]) \(value)")
      case ("change", 4):
        if let number = Int(words[3]) { arrive(number, words[2], first: first) }
        child.reply("\(words[1]) ok")
      case ("loaded", 2):
        loadCount += 1
        if !values.contains(words[1]) {
          problems.append("loaded \(words[1]), which was never sent")
        }
      case ("making", 2): calls.insert(Int(words[1]) ?? -1)
      case ("made", 2): returned.insert(Int(words[1]) ?? -1)
      case ("done", 1): break
      default: problems.append("unknown line: \(line)")
      }
    }
  }

  private mutating func arrive(_ number: Int, _ key: String, first: Int) {
    if !calls.contains(number) { problems.append("\(number) was never called") }
    if number < first { resumeCount += 1 }
    if let known = keys[number] {
      if known != key { problems.append("\(number) has the keys \(known) and \(key)") }
      return
    }
    keys[number] = key
    if let last = changes.last, last > number { problems.append("\(number) came after \(last)") }
    changes.append(number)
  }
}

@Suite("A program that is killed at random moments")
struct KilledProgramTests {
  /// The gate kills few programs; `OPERATION_KILLS=1000` kills a thousand.
  private static let kills =
    ProcessInfo.processInfo.environment["OPERATION_KILLS"].flatMap { Int($0) } ?? 30

  @Test("Every loaded value is one of the server, and every change arrives once and in order")
  func killed() async throws {
    var programs = RestartedPrograms()
    let directory = programs.directory
    defer { try? FileManager.default.removeItem(atPath: directory) }
    for round in 0...Self.kills {
      let isLast = round == Self.kills
      let first = round * 100
      let limit = isLast ? Int.max : Int.random(in: 1...25, using: &programs.random)
      // The program is killed before the next line, after it, or while it is written.
      let patience = Int32.random(in: 0...3, using: &programs.random)
      let before = programs
      programs = try await SignalChildProcess.run(
        [directory, "\(first)", isLast ? "0" : "100"], program: "KillChild"
      ) { child in
        var programs = before
        try programs.serve(child, first: first, lines: limit)
        if !isLast {
          _ = child.hasLine(within: patience)
          child.send(SIGKILL)
          // The lines that it has written arrive, and the answers do not.
          try programs.serve(child, first: first, lines: .max)
        }
        return programs
      }
    }
    #expect(programs.problems == [])
    #expect(programs.changes == programs.changes.sorted())
    #expect(programs.returned.isSubset(of: programs.changes))
    #expect(programs.loadCount > 0)
    // The last program leaves only its lock and its values.
    let names = try FileManager.default.contentsOfDirectory(atPath: directory)
    #expect(names.allSatisfy { $0 == "lock" || $0.hasPrefix("values_") })
    print(
      "\(Self.kills) kills: \(programs.changes.count) changes, \(programs.resumeCount) resumed, \(programs.loadCount) loaded"
    )
  }
}
