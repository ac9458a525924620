import Foundation
import SharingOperation
import Synchronization
import Testing

@testable import Snippets

/// Tests the tables of the guide WhichRulesWin.
@Suite struct RulesTests {
  private struct Failed: Error {}

  /// A query that fails, and the number of its attempts.
  private final class Failing: Sendable {
    let attempts = Atomic(0)

    func query(_ path: OperationPath) -> Query<Int, any Error> {
      Query(path: path) { [self] _ in
        attempts.wrappingAdd(1, ordering: .relaxed)
        throw Failed()
      }
    }
  }

  private func attempts<Request: QueryRequest>(
    in client: OperationClient = OperationClient(),
    of request: (Query<Int, any Error>) -> Request
  ) async -> Int where Request.State == QueryState<Int, any Error> {
    let failing = Failing()
    _ = try? await client.fetch(request(failing.query(["a", "b"])))
    return failing.attempts.load(ordering: .relaxed)
  }

  @Test("The last retry applies, and replaces that of the client") func retries() async {
    #expect(await attempts { $0.retry(limit: 5).retry(limit: 2).backoff(.noBackoff) } == 3)
    let defaults = OperationDefaults(retryLimit: 4, backoff: .noBackoff)
    #expect(await attempts(in: OperationClient(defaults: defaults)) { $0 } == 5)
    #expect(await attempts(in: OperationClient(defaults: defaults)) { $0.retry(limit: 0) } == 1)
  }

  @Test("Only the defaults of the longest prefix apply, to stores that are created later")
  func prefixes() async {
    let client = OperationClient(defaults: OperationDefaults(retryLimit: 1, backoff: .noBackoff))
    let before = client.store(for: Failing().query(["a", "b", "before"]))
    client.setDefaults(matching: ["a"]) {
      $0.retryLimit = 2
      $0.staleTime = .seconds(60)
    }
    client.setDefaults(matching: ["a", "b"]) { $0.networkMode = .online }
    before.currentValue = 1
    #expect(before.isStale)
    let shorter = client.store(for: Failing().query(["a", "c"]))
    shorter.currentValue = 1
    #expect(!shorter.isStale)
    let longer = client.store(for: Failing().query(["a", "b", "c"]))
    longer.currentValue = 1
    #expect(longer.isStale)
    #expect(await attempts(in: client) { $0.networkMode(.always) } == 2)
  }

  @Test("A timeout before a retry limits each attempt, and one after it limits all") func timeouts()
    async throws
  {
    let clock = ManualClock()
    let client = OperationClient(defaults: .testing, clock: clock)
    // Ends when it is cancelled. Only the timeouts sleep.
    let waiting = Query(path: ["waiting"]) { _ in
      for await _ in AsyncStream<Void>.makeStream().stream {}
      try Task.checkCancellation()
    }
    let inner = waiting.timeout(after: .seconds(5)).retry(limit: 1).backoff(.noBackoff)
    let each = Task { try await client.fetch(inner) }
    for _ in 1...2 {
      await clock.sleepers(atLeast: 1)
      await clock.advance(by: .seconds(5))
    }
    await #expect(throws: OperationTimeoutError.self) { try await each.value }
    #expect(clock.now().timeIntervalSince1970 == 10)
    let outer = waiting.retry(limit: 1).backoff(.noBackoff).timeout(after: .seconds(5))
    let all = Task { try await client.fetch(outer) }
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(5))
    await #expect(throws: OperationTimeoutError.self) { try await all.value }
    #expect(clock.now().timeIntervalSince1970 == 15)
  }

  @Test("Delays add up, and the last staleness rule applies") func delays() async throws {
    let clock = ManualClock()
    let client = OperationClient(defaults: .testing, clock: clock)
    let query = Query(path: ["delayed"]) { _ in 1 }
      .delay(for: .seconds(1)).delay(for: .seconds(2))
      .stale(after: .seconds(10)).stale(after: .seconds(60))
    let store = client.store(for: query)
    let run = Task { try await store.fetch() }
    for seconds in [2, 1] {
      await clock.sleepers(atLeast: 1)
      await clock.advance(by: .seconds(seconds))
    }
    #expect(try await run.value == 1)
    await clock.advance(by: .seconds(59))
    #expect(!store.isStale)
    await clock.advance(by: .seconds(1))
    #expect(store.isStale)
  }

  @Test("The longest retention applies") func retention() async {
    let clock = ManualClock()
    let client = OperationClient(clock: clock)
    let query = Query(path: ["kept"]) { _ in 1 }
    _ = client.store(for: query.retained(.forever).retained(.whileUsed))
    await clock.advance(by: .seconds(86_400))
    #expect(client.store(with: ["kept"]) != nil)
  }

  @Test("A context that is passed replaces values of the store's context, but no rules")
  func contexts() async throws {
    let clock = ManualClock()
    let client = makeClient(clock: clock) { $0.weather = WeatherService { _ in throw Failed() } }
    var context = OperationContext()
    context.weather = WeatherService { place in Forecast(place: place, celsius: 1) }
    let store = client.store(for: ForecastQuery(place: "Oslo").stale(after: .seconds(60)))
    #expect(try await store.fetch(using: context).celsius == 1)
    #expect(!store.isStale)
    await #expect(throws: Failed.self) { try await store.fetch() }
  }
}
