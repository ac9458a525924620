// The code of the guide Testing: it runs with the other tests, and one of them compares it with the
// guide.

import Foundation
import Operation
import SharingOperation
import Testing

@testable import Snippets

// snippet: a client for each test
@Test("A forecast comes from the service") func forecast() async throws {
  var context = OperationContext()
  context.weather = WeatherService { place in Forecast(place: place, celsius: 7) }
  let client = OperationClient(defaults: .testing, clock: ManualClock(), context: context)
  let store = client.store(for: ForecastQuery(place: "Bergen"))
  #expect(try await store.fetch() == Forecast(place: "Bergen", celsius: 7))
  #expect(store.valueLastUpdatedAt == Date(timeIntervalSince1970: 0))
}
// end

// snippet: retries
@Test("A second attempt comes after a second") func secondAttempt() async throws {
  struct Offline: Error {}
  let clock = ManualClock()
  let client = OperationClient(defaults: .testing, clock: clock)
  let query = Query(path: ["number"]) { context in
    guard context.operationRetryIndex == 1 else { throw Offline() }
    return 42
  }
  let store = client.store(for: query.retry(limit: 1).backoff(.constant(.seconds(1))))
  async let number = store.fetch()
  await clock.sleepers(atLeast: 1)
  await clock.advance(by: .seconds(1))
  #expect(try await number == 42)
}
// end

// snippet: settle
@Test("A poll fetches when it is due, and not before") func polling() async {
  let clock = ManualClock()
  let client = OperationClient(
    defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false), clock: clock)
  let query = Query(path: ["time"]) { context in context.operationClock.now() }
  let store = client.store(for: query.rerun(every: .seconds(10)))
  let subscription = store.subscribe { _ in }
  await clock.settle()
  await clock.advance(by: .seconds(9))
  await clock.settle()
  #expect(store.currentValue == nil)
  await clock.advance(by: .seconds(1))
  await clock.settle()
  #expect(store.currentValue == clock.now())
  subscription.cancel()
}
// end

// snippet: staleness
@Test("A forecast is fresh for ten minutes") func freshness() async throws {
  let clock = ManualClock()
  let client = OperationClient(defaults: .testing, clock: clock)
  let store = client.store(for: ForecastQuery(place: "Oslo").stale(after: .seconds(600)))
  try await store.fetch()
  await clock.advance(by: .seconds(599))
  #expect(!store.isStale)
  await clock.advance(by: .seconds(1))
  #expect(store.isStale)
}
// end

// snippet: hold a run in the middle
@Test("Two callers share one run") func sharing() async throws {
  let requests = Broadcast<Void>()
  let answers = Broadcast<Int>()
  var arrivals = requests.values.makeAsyncIterator()
  let store = OperationClient(defaults: .testing).store(
    for: Query(path: ["shared"]) { _ in
      var answer = answers.values.makeAsyncIterator()
      requests.send(())
      return await answer.next() ?? 0
    })
  async let first = store.fetch()
  _ = await arrivals.next()
  let second = store.runTask()
  #expect(second.hasStarted)
  answers.send(9)
  #expect(try await first == 9)
  #expect(try await second.runIfNeeded() == 9)
}
// end

// snippet: test a model
@Test("A model asks the client of its test") @MainActor func model() async throws {
  let client = OperationClient(defaults: .testing)
  let model = OperationClient.withCurrent(client) { ForecastModel() }
  try await model.refresh()
  #expect(model.title == "20.0 °C")
}
// end

// snippet: see a model load
@Test("A model is loading until the service answers") @MainActor func loading() async throws {
  let (answers, gate) = AsyncStream.makeStream(of: Double.self)
  var context = OperationContext()
  context.weather = WeatherService { place in
    for await celsius in answers { return Forecast(place: place, celsius: celsius) }
    throw CancellationError()
  }
  let client = OperationClient(defaults: .testing, context: context)
  let model = OperationClient.withCurrent(client) { ForecastModel() }
  #expect(model.title == "a moment, please")
  gate.yield(7)
  _ = try await model.$forecast.value()
  #expect(model.title == "7.0 °C")
}
// end

// snippet: see a model wait for a connection
@MainActor
final class AlarmModel {
  @SharedQuery(
    Mutation(path: ["alarm"]) { (place: String, _) in "warned \(place)" }.networkMode(.online)
  ) var alarm
}

@Test("An alarm waits for the connection") @MainActor func offline() async throws {
  let network = ManualNetworkObserver(.disconnected)
  let client = OperationClient(
    defaults: OperationDefaults(retryLimit: 0, networkObserver: network))
  let model = OperationClient.withCurrent(client) { AlarmModel() }
  let call = Task { try await model.$alarm.mutate(with: "Bergen") }
  for await status in model.$alarm.statuses where status.isPaused { break }
  #expect(model.alarm == nil)
  network.set(.connected)
  #expect(try await call.value == "warned Bergen")
  #expect(model.alarm == "warned Bergen")
}
// end

// snippet: find a model that shares a client
/// Reports each model without a client of its own. Call it in the initialiser of a suite.
func requireOwnClients() {
  OperationClient.requiresCurrent = true
}
// end

// snippet: test for reports
@Test("A negative limit is reported") func report() async {
  await confirmation { reported in
    OperationIssue.withHandler { issue in
      #expect(issue.kind == .invalidValue)
      reported()
    } operation: {
      _ = ForecastQuery(place: "Oslo").retry(limit: -1)
    }
  }
}
// end
