import Foundation
import Operation
import Testing

/// The result of every public entry with a name for invalid names.
@Suite("Bad input: names", .timeLimit(.minutes(5))) struct BadNameTests {
  private static let names: [(String, String)] = [
    ("an empty name", ""), ("a zero", "a\0b"), ("two lines", "a\nb"),
    ("100,000 characters", String(repeating: "a", count: 100_000)),
  ]

  private static func rows(
    _ entry: String, _ outcome: String, reports: [String] = [],
    call: @escaping @Sendable (String) async throws -> String
  ) -> [BadInput] {
    names.map { value, name in
      BadInput(entry, value, outcome, reports: reports) { try await call(name) }
    }
  }

  static let table: [BadInput] =
    rows("logDuration(_:to:)", "one line begins with it") { name in
      let lines = Recorder<String>()
      let query = OpenQuery(script: Script()).logDuration(name) { lines.append($0) }
      _ = try await query.run(in: .timed(by: ManualClock()))
      return lines.all == [name + " succeeded after 0.0 s"] ? "one line begins with it" : "not so"
    }
    + rows("OperationTaskConfiguration.init(name:priority:context:)", "runs") { name in
      let configuration = OperationTaskConfiguration(name: name)
      let store = OperationClient(defaults: .testing).store(for: OpenQuery(script: Script()))
      let value = try await store.fetch(using: configuration)
      let task = store.runTask(using: configuration)
      #expect(task.configuration.name == name)
      return try await value + task.runIfNeeded() == 3 ? "runs" : "does not"
    }
    + rows("PressureStallSource.init(file:)", "no notification", reports: ["memory"]) { file in
      let calls = Counter()
      let subscription = PressureStallSource(file: file).subscribe { _ in calls.increment() }
      subscription.cancel()
      return calls.value == 0 ? "no notification" : "notified"
    }
    + rows("OperationIssue.Kind.init(rawValue:)", "as it is") { name in
      let issue = OperationIssue(kind: OperationIssue.Kind(rawValue: name), message: name)
      return issue.description == "\(name): \(name)" ? "as it is" : issue.description
    }
    + rows("OperationIssue.init(kind:message:)", "reported as it is") { message in
      let log = Recorder<OperationIssue>()
      OperationIssue.withHandler({ log.append($0) }) {
        OperationIssue(kind: .invalidValue, message: message).report()
      }
      return log.all.map(\.message) == [message] ? "reported as it is" : "not so"
    }

  @Test(
    "An unusual name is used unchanged, and the name of a missing file is reported",
    arguments: table)
  func name(row: BadInput) async throws {
    try await row.check(row.reports.isEmpty ? .invalidValue : .unavailableSource)
  }
}
