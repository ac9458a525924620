import Operation
import Testing

/// Runs that no caller waits for.
@Suite(.timeLimit(.minutes(5))) struct BackgroundRunTests {
  private func client() -> OperationClient {
    OperationClient(defaults: .testing, clock: ManualClock())
  }

  @Test(
    "A run in the background has the current client and the handler of issues of the task that has caused it",
    arguments: 0...2)
  func taskLocals(_ cause: Int) async throws {
    let client = client()
    let hasClient = EventLog<Bool>()
    let source = OpenQuery(script: Script(), path: ["source"])
    let query = Query<Int, any Error>(path: ["query"]) { context in
      OperationIssue(kind: .invalidValue, message: "made by the request").report()
      hasClient.append(OperationClient.shared === client)
      return context.value(of: source) ?? 0
    }
    let reported = try await issues {
      try await OperationClient.withCurrent(client) {
        client.store(for: source).currentValue = 1
        _ = try await client.ensure(query)
        switch cause {
        case 0:
          client.invalidate(query)
          _ = try await client.ensure(query, whileStale: .revalidates)
          await hasClient.wait(for: 2)
        case 1:
          client.invalidate(matching: ["query"], running: .all)
          await hasClient.wait(for: 2)
        default:
          let subscription = client.store(for: query.neverStale()).subscribe { _ in }
          await hasClient.wait(for: 2)
          while client.store(for: query).isLoading { await Task.yield() }
          client.invalidate(source)
          await hasClient.wait(for: 3)
          while client.store(for: query).isLoading { await Task.yield() }
          client.store(for: source).currentValue = 2
          await hasClient.wait(for: 4)
          subscription.cancel()
        }
      }
    }
    #expect(hasClient.values.allSatisfy { $0 })
    #expect(reported.issues.count == hasClient.count)
  }
}
