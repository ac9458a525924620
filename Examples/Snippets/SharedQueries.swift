// The code of the guide SharedQueries: the build compiles it, and a test compares it with the
// guide.

// snippet: declare a property
import Observation
import SharingOperation

@MainActor
@Observable
final class ForecastModel {
  @ObservationIgnored @SharedQuery(ForecastQuery(place: "Bergen")) var forecast

  var title: String {
    if let forecast { return "\(forecast.celsius) °C" }
    return $forecast.isLoading ? "a moment, please" : "nothing yet"
  }

  func refresh() async throws {
    try await $forecast.fetch()
  }
}
// end

// snippet: observe a change
@MainActor
func printNextChange(of model: ForecastModel, to log: @escaping @Sendable (String) -> Void) {
  withObservationTracking {
    log(model.title)
  } onChange: {
    log("there is a new title")
  }
}
// end

// snippet: observe a change 2
@MainActor
func printTitles(of model: ForecastModel) async {
  for await title in Observations({ model.title }) { print(title) }
}
// end

// snippet: get rid of the optional
func placesQuery() -> Query<[String], any Error> {
  Query(path: ["places"]) { _ in ["Bergen", "Oslo"] }
}

struct Places {
  @SharedQuery(placesQuery(), default: []) var names

  var count: Int { names.count }
}
// end

// snippet: select a part of a value
struct TemperatureModel {
  @SharedQuery(ForecastQuery(place: "Rome"), select: { $0.celsius }) var celsius
}
// end

// snippet: bind a request later or none
@MainActor
final class ChosenPlaceModel {
  @SharedQuery<ForecastQuery.State> var forecast

  func choose(_ place: String) {
    $forecast.bind(to: ForecastQuery(place: place))
  }
}
// end

// snippet: search as you type
@MainActor
final class PlaceSearch {
  @SharedQuery<ForecastQuery.State> var forecast

  func search(_ place: String) {
    let query = place.isEmpty ? nil : ForecastQuery(place: place)
    $forecast.bind(to: query, debouncedBy: .milliseconds(300), keepingPrevious: true)
  }

  func clear() { $forecast.bind(to: nil) }
}
// end

// snippet: follow another property
final class NeighbourModel {
  @SharedQuery(ForecastQuery(place: "Bergen")) var here
  @SharedQuery<ForecastQuery.State> var there

  init() {
    _there = SharedQuery(dependingOn: $here) { here in
      ForecastQuery(place: here.celsius < 10 ? "Lisbon" : "Tromsø")
    }
  }
}
// end

// snippet: pages and mutations
final class LettersModel {
  @SharedQuery(LettersRequest(years: 1890...1910, initialPageId: 1900)) var years

  var letters: [Letter] { years.flatMap(\.value) }

  func more() async throws {
    try await $years.fetchNextPage()
  }
}
// end

// snippet: which client is used
@MainActor
final class PlaceModel {
  @SharedQuery<ForecastQuery.State> var forecast
  @SharedQuery<ForecastQuery.State> var chosen
  @SharedQuery<DefaultState<Query<[String], any Error>.State>>(default: []) var names
  @SharedQuery<SelectedState<ForecastQuery.State, Double?>> var celsius

  init(place: String, client: OperationClient) {
    let query = ForecastQuery(place: place)
    _forecast = SharedQuery(query, client: client)
    // Requests are bound to it later.
    _chosen = SharedQuery(client: client)
    _names = SharedQuery(placesQuery(), default: [], client: client)
    _celsius = SharedQuery(query, client: client) { $0.celsius }
  }
}
// end

// snippet: which client is used 2
@MainActor
func makeModel(in client: OperationClient) -> ForecastModel {
  OperationClient.withCurrent(client) { ForecastModel() }
}
// end

// snippet: wait for a first value
func firstForecast(of model: PlaceSearch) async throws -> Forecast {
  try await model.$forecast.value()
}
// end
