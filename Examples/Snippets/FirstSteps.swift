// The code of the guide FirstSteps: the build compiles it, and a test compares it with the guide.

// snippet: describe a query
import Operation

struct Forecast: Sendable, Equatable {
  var place: String
  var celsius: Double
}

struct ForecastQuery: SimpleQueryRequest, Hashable {
  let place: String

  func fetch(in context: OperationContext) async throws -> Forecast {
    try await context.weather.forecast(place)
  }
}
// end

// snippet: inject a service
struct WeatherService: Sendable {
  var forecast: @Sendable (_ place: String) async throws -> Forecast
}

extension OperationContext {
  var weather: WeatherService {
    get { self[WeatherKey.self] }
    set { self[WeatherKey.self] = newValue }
  }

  private enum WeatherKey: Key {
    static var defaultValue: WeatherService {
      WeatherService { place in Forecast(place: place, celsius: 20) }
    }
  }
}
// end

// snippet: inject a service 2
func makeClient(asking service: WeatherService) -> OperationClient {
  var context = OperationContext()
  context.weather = service
  return OperationClient(context: context)
}
// end

// snippet: fetch the value
func printForecast(in client: OperationClient) async throws {
  let store = client.store(for: ForecastQuery(place: "Bergen"))
  let forecast = try await store.fetch()
  print(forecast.celsius, "°C")
  print(store.currentValue == forecast, store.status.isSuccess, store.valueUpdateCount)
}
// end

// snippet: follow the value
func follow(_ store: OperationStore<ForecastQuery.State>) async {
  for await forecast in store.values {
    print(forecast.map { "\($0.celsius) °C" } ?? "nothing yet")
  }
}
// end
