// The code of the guide Queries: the build compiles it, and a test compares it with the guide.

// snippet: queries with and without a type
import Operation

func temperature(in place: String) -> Query<Double, any Error> {
  Query(path: ["temperature", place]) { context in
    try await context.weather.forecast(place).celsius
  }
}
// end

// snippet: queries with and without a type 2
struct StationQuery: SimpleQueryRequest, Hashable {
  let id: Int
  func fetch(in context: OperationContext) async throws -> String { "station \(id)" }
}
// end

// snippet: failures
enum GaugeError: Error {
  case outOfReach
}

struct GaugeQuery: SimpleQueryRequest, Hashable {
  let river: String

  func fetch(in context: OperationContext) async throws(GaugeError) -> Double {
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

// snippet: retries backoff and timeouts
struct UnknownPlace: Error {}

func patientForecast(for place: String) -> some QueryRequest<Forecast, ForecastQuery.State> {
  ForecastQuery(place: place)
    .timeout(after: .seconds(5))
    .retry(limit: 4) { error in !(error is UnknownPlace) }
    .backoff(.exponential(.seconds(1)).capped(at: .seconds(20)).jittered())
    .stale(after: .seconds(600))
}
// end

// snippet: retries backoff and timeouts 2
func possiblyPolledForecast(
  for place: String, isPolled: Bool
) -> any QueryRequest<Forecast, ForecastQuery.State> {
  if isPolled { return ForecastQuery(place: place).rerun(every: .seconds(60)) }
  return ForecastQuery(place: place)
}
// end

// snippet: retries backoff and timeouts 3
func makePatientClient() -> OperationClient {
  var defaults = OperationDefaults.standard
  defaults.retryLimit = 5
  defaults.backoff = .fibonacci(.milliseconds(500))
  return OperationClient(defaults: defaults)
}
// end

// snippet: the state of a retry
func describeRetry(of store: OperationStore<ForecastQuery.State>) -> String? {
  store.state.retry.map { "failed \($0.failedAttempts) times, next try at \($0.nextAttemptAt)" }
}

func connectedForecast(for place: String) -> some QueryRequest<Forecast, ForecastQuery.State> {
  ForecastQuery(place: place).retry(limit: 5).retries(onlyWhile: .connected && .foreground)
}
// end

// snippet: staleness
func freshForecast(for place: String, in client: OperationClient) async throws -> Forecast {
  try await client.ensure(patientForecast(for: place))
}
// end

// snippet: return a cached value in place of an error
func forecastAnyway(for place: String, in client: OperationClient) async throws -> Forecast {
  let query = ForecastQuery(place: place).stale(after: .seconds(60)).staleIfError(
    for: .seconds(3_600))
  return try await client.ensure(query, whileStale: .revalidates)
}
// end

// snippet: restart a request in flight
func reload(_ store: OperationStore<ForecastQuery.State>) async throws -> Forecast {
  try await store.fetch(restarting: true)
}
// end

// snippet: write the value
func correct(_ store: OperationStore<ForecastQuery.State>, by degrees: Double) {
  store.withExclusiveAccess {
    guard var forecast = store.currentValue else { return }
    forecast.celsius += degrees
    store.currentValue = forecast
  }
}
// end

// snippet: events of a store
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

// snippet: many stores at once
func warmestPlace(in client: OperationClient) -> Double? {
  let stores = client.stores(matching: ["temperature"], of: QueryState<Double, any Error>.self)
  return stores.compactMap(\.currentValue).max()
}

func refreshTemperatures(in client: OperationClient) {
  client.invalidate(matching: ["temperature"])
}
// end

// snippet: two views of one fetch
func stationName(_ id: Int) -> some QueryRequest<String, QueryState<String, any Error>> {
  StationQuery(id: id).map { name in name.uppercased() }
}
// end

// snippet: values from a socket or a file
func newestReading(from readings: @escaping @Sendable () -> AsyncThrowingStream<Double, any Error>)
  -> some QueryRequest<Double, QueryState<Double, any Error>>
{
  Query(path: ["reading"], newestOf: { _ in readings() })
    .retry(limit: .max).backoff(.exponential(.seconds(1)).capped(at: .seconds(30)))
}

func allReadings(from readings: @escaping @Sendable () -> AsyncThrowingStream<Double, any Error>)
  -> some QueryRequest<[Double], QueryState<[Double], any Error>>
{
  Query(path: ["readings"], appending: { _ in readings() })
}
// end

// snippet: values from a socket or a file 2
func messages(
  from socket: Broadcast<String>, load: @escaping @Sendable () async throws -> [String]
) -> Query<[String], any Error> {
  Query(path: ["messages"]) { _, continuation in
    var arriving = socket.values.makeAsyncIterator()
    var all = try await load()
    continuation.yield(all)
    while let message = await arriving.next() {
      // It may have been sent before the others were loaded.
      if all.contains(message) { continue }
      all.append(message)
      continuation.yield(all)
    }
    try Task.checkCancellation()
    return all
  }
}
// end

// snippet: batches
let celsiusByPlace = BatchLoader<String, Double>(delay: .milliseconds(5), maxSize: 100) { places in
  Dictionary(uniqueKeysWithValues: places.map { ($0, 20) })
}

func batchedTemperature(in place: String) -> Query<Double, any Error> {
  Query(path: ["batched", place]) { context in
    try await celsiusByPlace.load(place, in: context)
  }
}
// end

// snippet: limits
func politeForecast(for place: String) -> some QueryRequest<Forecast, ForecastQuery.State> {
  ForecastQuery(place: place).limited(to: 4, in: "weather service")
}
// end

// snippet: run without a store
func forecastOnce(for place: String, from service: WeatherService) async throws -> Forecast {
  var context = OperationContext()
  context.weather = service
  return try await patientForecast(for: place).run(in: context)
}
// end
