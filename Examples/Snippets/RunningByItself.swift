// The code of the guide RunningByItself: the build compiles it, and a test compares it with the
// guide.

struct Parcel: Sendable, Equatable {
  let place: String
  var hasArrived = false
}

struct Carrier: Sendable {
  var find: @Sendable (_ number: Int) async throws -> Parcel = { _ in Parcel(place: "Bergen") }
}

extension OperationContext {
  var carrier: Carrier {
    get { self[CarrierKey.self] }
    set { self[CarrierKey.self] = newValue }
  }

  private enum CarrierKey: Key {
    static var defaultValue: Carrier { Carrier() }
  }
}

// snippet: what runs automatically
import Operation

func quietDefaults() -> OperationDefaults {
  var defaults = OperationDefaults.standard
  defaults.runsAutomatically = false
  return defaults
}

func wakefulForecast(for place: String) -> some QueryRequest<Forecast, ForecastQuery.State> {
  ForecastQuery(place: place).stale(after: .seconds(600)).enableAutomaticRunning()
}
// end

// snippet: never run automatically
func forecastOnDemand(for place: String) -> some QueryRequest<Forecast, ForecastQuery.State> {
  ForecastQuery(place: place).manual()
}
// end

// snippet: conditions
func forecastForReaders(of place: String) -> some QueryRequest<Forecast, ForecastQuery.State> {
  ForecastQuery(place: place)
    .stale(after: .seconds(600))
    .enableAutomaticRunning(
      onlyWhen: ConnectionRunSpecification.connected && ForegroundRunSpecification.foreground)
}

func forecastForMembers(
  of place: String, logins: Broadcast<Bool>
) -> some QueryRequest<Forecast, ForecastQuery.State> {
  ForecastQuery(place: place).rerunOnChange(of: .latest(of: logins))
}
// end

// snippet: poll
func liveForecast(for place: String) -> some QueryRequest<Forecast, ForecastQuery.State> {
  ForecastQuery(place: place).rerun(every: .seconds(60), while: .connected)
}

func parcel(_ number: Int) -> some QueryRequest<Parcel, QueryState<Parcel, any Error>> {
  Query(path: ["parcel", number]) { context in try await context.carrier.find(number) }
    .rerun(while: { state in state.currentValue?.hasArrived != true }, every: .seconds(10))
}
// end

// snippet: an interval that the state decides
func adaptiveForecast(for place: String) -> some QueryRequest<Forecast, ForecastQuery.State> {
  ForecastQuery(place: place)
    .rerun(every: { state in state.error == nil ? .seconds(60) : .seconds(5) })
    .rerunOnChange(of: .connected && .foreground, evenIfFresh: true)
    .automaticRuns(named: "forecast", priority: .background)
}
// end

// snippet: wait for a connection
func reserveWhenOnline() -> some StatefulOperationRequest<Reservation, Reserve.State> {
  Reserve().networkMode(.online).serialized(in: "dining room")
}
// end

// snippet: wait for a connection 2
func waitingGuests(in store: OperationStore<Reserve.State>) -> [String] {
  store.history.filter(\.status.isPaused).map(\.arguments.guest)
}
// end

// snippet: observe connection and foreground
func makeClient(on network: ManualNetworkObserver) -> OperationClient {
  var defaults = OperationDefaults.testing
  defaults.networkMode = .offlineFirst
  defaults.networkObserver = network
  return OperationClient(defaults: defaults)
}
// end

// snippet: evict stores when memory is short
func evictStores(
  of client: OperationClient, when source: some MemoryPressureSource
) -> OperationSubscription {
  client.evictWhen(pressure: .critical, from: source)
}
// end

// snippet: feed a store from outside
struct Station: OperationController {
  typealias State = ForecastQuery.State
  let reports: Broadcast<Forecast>

  func control(with controls: OperationControls<State>) -> OperationSubscription {
    reports.subscribe { report in controls.yield(report) }
  }
}

func reportedForecast(
  for place: String, from reports: Broadcast<Forecast>
) -> some QueryRequest<Forecast, ForecastQuery.State> {
  ForecastQuery(place: place).controlled(by: Station(reports: reports))
}
// end
