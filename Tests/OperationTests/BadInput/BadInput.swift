import Operation
import Testing

/// A row of the tables of bad input: the result of a public entry for a value that it cannot use.
struct BadInput: Sendable, CustomTestStringConvertible {
  /// The name of the function in the documentation.
  let entry: String
  let value: String
  /// The result that `call` returns.
  let outcome: String
  /// A part of each report.
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

  /// Calls the entry, and compares the result and the reports with the row.
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
