// The code of the guide WhichRulesWin: the build compiles it, and a test compares it with the
// guide.

// snippet: from the weakest to the strongest
import Operation

func makeClientWithRules() -> OperationClient {
  var defaults = OperationDefaults.standard
  defaults.retryLimit = 5
  let client = OperationClient(defaults: defaults)
  client.setDefaults(matching: ["temperature"]) { $0.retryLimit = 1 }
  return client
}

func measure(in client: OperationClient) async throws {
  // Five retries, by the client.
  try await client.fetch(ForecastQuery(place: "Bergen"))
  // One retry, by the path.
  try await client.fetch(temperature(in: "Bergen"))
  // No retry, by the request.
  try await client.fetch(temperature(in: "Oslo").retry(limit: 0))
}
// end
