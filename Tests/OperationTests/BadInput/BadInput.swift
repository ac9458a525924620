import Operation
import Testing

/// A row of the tables of bad input: what a public entry makes of a value that it cannot use.
struct BadInput: Sendable, CustomTestStringConvertible {
  /// The function, as the documentation names it.
  let entry: String
  let value: String
  /// What comes of it, as `call` tells it.
  let outcome: String
  /// What the reports have to contain, one each.
  let reports: [String]
  let call: @Sendable () async throws -> String

  init(
    _ entry: String, _ value: String, _ outcome: String, reports: [String] = [],
    call: @escaping @Sendable () async throws -> String
  ) {
    self.entry = entry
    self.value = value
    self.outcome = outcome
    self.reports = reports
    self.call = call
  }

  var testDescription: String {
    "\(entry) given \(value): \(outcome)\(reports.isEmpty ? "" : ", reported")"
  }

  /// Calls, and compares with what the row says.
  func check(_ kind: OperationIssue.Kind = .invalidValue) async throws {
    let (reported, outcome) = try await issues(in: call)
    #expect(outcome == self.outcome, "\(self.testDescription)")
    #expect(reported.count == reports.count, "\(reported)")
    for (issue, part) in zip(reported, reports) {
      #expect(issue.kind == kind)
      #expect(issue.message.contains(part), "\(issue)")
    }
  }
}
