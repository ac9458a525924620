// The code of the guide TheClient: the build compiles it, and a test compares it with the guide.

// snippet: the client
import Foundation
import Operation

func makeSparingClient(clock: some OperationClock = SystemClock()) -> OperationClient {
  OperationClient(clock: clock, retention: .unusedFor(.seconds(60)).limited(to: 500))
}

func lastingForecast(for place: String) -> some QueryRequest<Forecast, ForecastQuery.State> {
  ForecastQuery(place: place).retained(.forever)
}
// end

// snippet: observe which stores exist
func printStores(of client: OperationClient) -> OperationSubscription {
  client.subscribe(matching: ["temperature"]) { change in
    for store in change.storesAdded { print("new:", store.path) }
    for store in change.storesRemoved { print("gone:", store.path) }
  }
}
// end

// snippet: count what runs
func describeActivity(of client: OperationClient) -> String {
  let activity = client.activity
  if activity.mutations.paused > 0 { return "waiting for the connection" }
  return activity.queries.running + activity.pages.running > 0 ? "loading" : "up to date"
}

func printActivity(of client: OperationClient) async {
  for await activity in client.activities {
    print(activity.queries.running, "running,", activity.queries.failed, "failed")
  }
}
// end

// snippet: events logs and snapshots
func logWhatHappens(in client: OperationClient) -> OperationSubscription {
  client.log(to: StandardErrorLogger())
}

func printSlowRuns(of client: OperationClient) async {
  for await event in client.events {
    if case .runEnded(_, _, let duration?) = event.occurrence, duration > .seconds(2) {
      print(event)
    }
  }
}

func describe(_ client: OperationClient) throws -> String {
  let snapshot = try JSONEncoder().encode(client.snapshot())
  return String(decoding: snapshot, as: UTF8.self)
}
// end

// snippet: statistics
func makeCountingClient() -> OperationClient {
  let client = OperationClient()
  _ = client.statistics(byPrefixOfLength: 1)
  return client
}

func metrics(of client: OperationClient) -> String {
  client.statistics(byPrefixOfLength: 1).prometheusText()
}
// end

// snippet: filters
func refreshFailures(in client: OperationClient) async throws {
  try await client.fetch(matching: ["temperature"], where: .failed && !.loading)
  client.invalidate(
    matching: ["temperature"], where: .where { $0.leaseCount == 0 }, running: .nothing)
}
// end

// snippet: defaults by path
func makeClientWithDefaults() -> OperationClient {
  let client = OperationClient()
  client.setDefaults(matching: ["temperature"]) { $0.staleTime = .seconds(60) }
  return client
}
// end

// snippet: shut down
func stop(_ client: OperationClient) async {
  print(await client.shutdown(within: .seconds(5)))
}
// end
