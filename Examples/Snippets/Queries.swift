// The code of the guide Queries: the build compiles it, and a test compares it with the guide.

import Operation

// snippet: closure
func temperature(in place: String) -> Query<Double, any Error> {
  Query(path: ["temperature", place]) { context in
    try await context.weather.forecast(place).celsius
  }
}
// end

// snippet: failure
enum GaugeError: Error {
  case outOfReach
}

struct GaugeQuery: QueryRequest, Hashable {
  let river: String

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Double, GaugeError>
  ) async throws(GaugeError) -> Double {
    guard river == "Rhine" else { throw .outOfReach }
    return 3.5
  }
}

func level(of river: String, in client: OperationClient) async -> Double? {
  do throws(GaugeError) {
    return try await client.store(for: GaugeQuery(river: river)).fetch()
  } catch {
    switch error {
    case .outOfReach: return nil
    }
  }
}
// end

// snippet: modifiers
struct UnknownPlace: Error {}

func patientForecast(for place: String) -> some QueryRequest<Forecast, ForecastQuery.State> {
  ForecastQuery(place: place)
    .timeout(after: .seconds(5))
    .retry(limit: 4) { error in !(error is UnknownPlace) }
    .backoff(.exponential(.seconds(1)).jittered().capped(at: .seconds(20)))
    .stale(after: .seconds(600))
}
// end

// snippet: defaults
func makePatientClient() -> OperationClient {
  var defaults = OperationDefaults.standard
  defaults.retryLimit = 5
  defaults.backoff = .fibonacci(.milliseconds(500))
  return OperationClient(defaults: defaults)
}
// end

// snippet: fresh
func freshForecast(for place: String, in client: OperationClient) async throws -> Forecast {
  try await client.ensure(patientForecast(for: place))
}
// end

// snippet: write
func correct(_ store: OperationStore<ForecastQuery.State>, by degrees: Double) {
  store.withExclusiveAccess {
    guard var forecast = store.currentValue else { return }
    forecast.celsius += degrees
    store.currentValue = forecast
  }
}
// end

// snippet: events
func log(_ store: OperationStore<ForecastQuery.State>) -> OperationSubscription {
  store.subscribe { event in
    switch event {
    case .stateChanged(let state): print("state:", state.status)
    case .runStarted(let run): print("run", run.id, "because of", run.cause)
    case .yielded(let result, let run): print("run", run.id, "so far:", result)
    case .runEnded(let result, let run): print("run", run.id, "in the end:", result)
    }
  }
}
// end

// snippet: matching
func warmestPlace(in client: OperationClient) -> Double? {
  let stores = client.stores(matching: ["temperature"], of: QueryState<Double, any Error>.self)
  return stores.compactMap(\.currentValue).max()
}

func refreshTemperatures(in client: OperationClient) {
  client.invalidate(matching: ["temperature"])
}
// end

// snippet: storeless
func forecastOnce(for place: String, from service: WeatherService) async throws -> Forecast {
  var context = OperationContext()
  context.weather = service
  return try await patientForecast(for: place).run(in: context)
}
// end
