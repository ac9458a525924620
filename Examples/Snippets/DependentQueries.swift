// The code of the guide DependentQueries: the build compiles it, and a test compares it with the
// guide.

struct Address: Sendable, Equatable {
  let place: String
}

struct AddressBook: Sendable {
  var home: @Sendable () async throws -> Address = { Address(place: "Bergen") }
}

extension OperationContext {
  var addressBook: AddressBook {
    get { self[AddressBookKey.self] }
    set { self[AddressBookKey.self] = newValue }
  }

  private enum AddressBookKey: Key {
    static var defaultValue: AddressBook { AddressBook() }
  }
}

// snippet: dependent queries
import SharingOperation

struct HomeQuery: SimpleQueryRequest, Hashable {
  func fetch(in context: OperationContext) async throws -> Address {
    try await context.addressBook.home()
  }
}
// end

// snippet: read another query
struct HomeForecastQuery: SimpleQueryRequest, Hashable {
  func fetch(in context: OperationContext) async throws -> Forecast {
    let home = try await context.ensure(HomeQuery())
    return try await context.weather.forecast(home.place)
  }
}
// end

// snippet: read another query 2
struct GreetingQuery: SimpleQueryRequest, Hashable {
  func fetch(in context: OperationContext) async throws -> String {
    let home = try await context.ensure(HomeQuery())
    guard let forecast = context.value(of: ForecastQuery(place: home.place)) else {
      return "Hello, \(home.place)!"
    }
    return "Hello, \(home.place)! It has \(forecast.celsius) °C."
  }
}
// end

// snippet: invalidation follows what was read
func moveHouse(in client: OperationClient) {
  client.invalidate(HomeQuery())
}
// end

// snippet: follow a query in a model
final class HomeModel {
  @SharedQuery(HomeQuery()) var home
  @SharedQuery<ForecastQuery.State> var forecast

  init() {
    _forecast = SharedQuery(dependingOn: $home) { home in ForecastQuery(place: home.place) }
  }
}
// end

// snippet: follow a query in a loop
func homeForecasts(in client: OperationClient) -> OperationChain<Forecast?> {
  client.chain(HomeQuery()) { home in ForecastQuery(place: home.place) }
}
// end

// snippet: make one query of both
struct Overview: Sendable, Equatable {
  var home: Address
  var forecast: Forecast?
}

struct OverviewQuery: QueryRequest, Hashable {
  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Overview, any Error>
  ) async throws -> Overview {
    let home = try await context.addressBook.home()
    continuation.yield(Overview(home: home))
    return Overview(home: home, forecast: try await context.weather.forecast(home.place))
  }
}
// end
