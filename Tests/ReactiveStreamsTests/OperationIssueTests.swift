import Foundation
import Testing

@testable import ReactiveStreams

@Suite("OperationIssue", .serialized)
struct OperationIssueTests {
  private let issue = OperationIssue(kind: .invalidValue, message: "there is no -1st page")
  private let issues = Recorder<OperationIssue>()

  /// Calls `body` with a handler of the whole process, and restores the default handler.
  private func withProcessHandler(_ body: (Recorder<OperationIssue>) async -> Void) async {
    let process = Recorder<OperationIssue>()
    setHandler { process.record($0) }
    await body(process)
    OperationIssue.setHandler(nil)
  }

  /// Sets the handler of the process for the report of these tests: other tests, which run meanwhile,
  /// report, too.
  private func setHandler(_ handler: @escaping @Sendable (OperationIssue) -> Void) {
    OperationIssue.setHandler { [issue] reported in if reported == issue { handler(reported) } }
  }

  @Test("Its description is one line with the kind and the message")
  func description() {
    #expect(issue.description == "invalid value: there is no -1st page")
    #expect("\(OperationIssue(kind: .init(rawValue: "mine"), message: "m"))" == "mine: m")
  }

  @Test("A scoped handler receives the reports of its scope; of two, the inner one does")
  func scope() {
    let inner = Recorder<OperationIssue>()
    let result = OperationIssue.withHandler {
      issues.record($0)
    } operation: {
      issue.report()
      OperationIssue.withHandler {
        inner.record($0)
      } operation: {
        issue.report()
      }
      return 7
    }
    #expect(result == 7)
    #expect(issues.elements == [issue])
    #expect(inner.elements == [issue])
  }

  @Test("A scoped handler receives the reports of the tasks of its scope")
  func tasks() async {
    await OperationIssue.withHandler { [issues] in
      issues.record($0)
    } operation: {
      issue.report()
      await Task { issue.report() }.value
      async let report: Void = issue.report()
      await report
    }
    #expect(issues.count == 3)
  }

  @Test("A scope rethrows the error of its operation")
  func throwing() async {
    #expect(throws: OperationIssue.self) {
      try OperationIssue.withHandler { _ in
      } operation: {
        throw issue
      }
    }
    await #expect(throws: OperationIssue.self) {
      try await OperationIssue.withHandler { _ in
      } operation: {
        await Task.yield()
        throw issue
      }
    }
  }

  @Test("The process handler receives the reports outside of scopes, also of detached tasks")
  func process() async {
    await withProcessHandler { process in
      issue.report()
      OperationIssue.withHandler {
        issues.record($0)
      } operation: {
        issue.report()
      }
      await OperationIssue.withHandler { [issues] in
        issues.record($0)
      } operation: {
        await Task.detached { issue.report() }.value
      }
      #expect(process.elements == [issue, issue])
    }
    #expect(issues.elements == [issue])
  }

  @Test("A handler may report and set another handler inside its call")
  func reentrant() async {
    await withProcessHandler { process in
      let first = Recorder<OperationIssue>()
      let done = onThread {
        setHandler { issue in
          first.record(issue)
          setHandler { process.record($0) }
          issue.report()
        }
        issue.report()
      }
      #expect(done.wait())
      #expect(first.elements == [issue])
      #expect(process.elements == [issue])
    }
  }

  @Test("A replaced handler is released with no lock held")
  func releasedWithoutLock() async {
    await withProcessHandler { process in
      let done = onThread {
        do {
          let captured = DeinitAction { issue.report() }
          setHandler { _ in _ = captured }
        }
        setHandler { process.record($0) }
      }
      #expect(done.wait())
      #expect(process.elements == [issue])
    }
  }

  @Test("Without a handler, one line is written to standard error")
  func standardError() async throws {
    let result = await #expect(
      processExitsWith: .success, observing: [\.standardErrorContent]
    ) {
      OperationIssue(kind: .invalidValue, message: "first").report()
      OperationIssue.setHandler { _ in }
      OperationIssue(kind: .invalidValue, message: "ignored").report()
      OperationIssue.setHandler(nil)
      OperationIssue(kind: .invalidValue, message: "last\n of\r\nthree lines").report()
    }
    let text = String(decoding: try #require(result?.standardErrorContent), as: UTF8.self)
    let lines = text.split(separator: "\n").filter { $0.hasPrefix("swift-operation") }
    #expect(
      lines == [
        "swift-operation: invalid value: first",
        "swift-operation: invalid value: last  of three lines",
      ])
  }

  @Test("A closed standard error does not end the process")
  func closedStandardError() async {
    await #expect(processExitsWith: .success) {
      close(2)
      OperationIssue(kind: .invalidValue, message: "ignored").report()
    }
  }
}
