import SharingOperation
import Synchronization
import Testing

@testable import Snippets

extension SnippetTests {
  @Test("A reservation waits for the connection, and its guest is listed meanwhile") func offline()
    async throws
  {
    let network = ManualNetworkObserver(.disconnected)
    let store = makeClient(on: network).store(for: reserveWhenOnline())
    let call = Task { try await store.mutate(with: Reserve.Arguments(guest: "Ada", seats: 2)) }
    for await status in store.statuses where status.isPaused { break }
    #expect(waitingGuests(in: store) == ["Ada"])
    network.set(.connected)
    #expect(try await call.value.seats == 2)
    #expect(waitingGuests(in: store) == [])
  }

  @Test("A parcel is polled until it has arrived, and a forecast runs after a login")
  func byItself() async throws {
    let clock = ManualClock()
    let client = makeClient(clock: clock) {
      $0.carrier.find = { number in Parcel(place: "Oslo", hasArrived: number == 2) }
    }
    var parcels = client.store(for: parcel(2)).values.compactMap { $0 }.makeAsyncIterator()
    #expect(await parcels.next() == Parcel(place: "Oslo", hasArrived: true))
    let logins = Broadcast<Bool>()
    let forecast = client.store(for: forecastForMembers(of: "Oslo", logins: logins).neverStale())
    let subscription = forecast.subscribe { _ in }
    for await status in forecast.statuses where status.isSuccess { break }
    forecast.invalidate()
    logins.send(true)
    for await status in forecast.statuses where status.isSuccess { break }
    subscription.cancel()
    #expect(forecast.valueUpdateCount == 2)
  }

  @Test("Unobserved stores are evicted when memory is short") func pressure() async throws {
    let client = makeClient()
    let source = ManualMemoryPressureSource()
    let subscription = evictStores(of: client, when: source)
    let observed = client.store(for: temperature(in: "Oslo").neverStale())
    try await observed.fetch()
    let reader = observed.subscribe { _ in }
    _ = client.store(for: temperature(in: "Bergen"))
    source.send(.warning)
    #expect(client.stores(matching: ["temperature"]).count == 2)
    source.send(.critical)
    #expect(client.stores(matching: ["temperature"]).map(\.path) == [["temperature", "Oslo"]])
    subscription.cancel()
    reader.cancel()
  }

  @Test("Fewer seats are displayed while a reservation is in flight, and after it has succeeded")
  func optimistic() async throws {
    struct Full: Error {}
    let client = makeClient {
      $0.restaurant.reserve = { guest, seats in
        if seats > 10 { throw Full() }
        return Reservation(guest: guest, seats: seats)
      }
    }
    let seats = client.store(for: FreeSeatsQuery())
    try await seats.fetch()
    let described = Mutex<[String]>([])
    let subscription = seats.subscribe { event in
      if case .stateChanged = event { described.withLock { $0.append(describeSeats(of: seats)) } }
    }
    _ = try await reserve(Reserve.Arguments(guest: "Ada", seats: 4), in: client)
    await #expect(throws: Full.self) {
      try await reserve(Reserve.Arguments(guest: "Ada", seats: 11), in: client)
    }
    subscription.cancel()
    #expect(seats.currentValue == 36 && seats.confirmedValue == 36)
    #expect(described.withLock { $0.contains("36, if all goes well, and 40 if nothing does") })
    #expect(described.withLock { $0.contains("25, if all goes well, and 36 if nothing does") })
  }

  @Test("A wrapper and many stores display an edit") @MainActor
  func optimisticElsewhere() async throws {
    try await OperationClient.withCurrent(makeClient()) {
      let model = SeatsModel()
      try await model.$free.fetch()
      try await model.reserve(4, for: "Ada")
      #expect(model.free == 36)
      await model.$free.optimistically {
        $0 -= 1
      } while: {
        #expect(model.label == "35 …")
      }
      #expect(model.label == "35")
    }
    let client = makeClient()
    let store = client.store(for: temperature(in: "Oslo"))
    try await store.fetch()
    try await warm(["temperature"], by: 2, in: client) { #expect(store.currentValue == 22) }
    #expect(store.currentValue == 22)
  }

  @Test("A client evicts unused stores, retains others, and describes its activity")
  func client() async throws {
    let clock = ManualClock()
    let client = makeSparingClient(clock: clock)
    let subscription = printStores(of: client)
    try await client.fetch(lastingForecast(for: "Oslo"))
    do {
      let temperature = client.store(for: temperature(in: "Oslo"))
      try await temperature.fetch()
      #expect(describeActivity(of: client) == "up to date")
      let task = temperature.runTask()
      #expect(describeActivity(of: client) == "loading")
      _ = try await task.runIfNeeded()
    }
    await clock.advance(by: .seconds(60))
    #expect(client.stores(matching: []).count == 1)
    subscription.cancel()
  }

  @Test("An invalidated address makes the forecast stale that was read with it")
  func invalidation() async throws {
    let client = makeClient()
    let forecast = client.store(for: HomeForecastQuery().neverStale())
    try await forecast.fetch()
    #expect(!forecast.isStale)
    moveHouse(in: client)
    #expect(forecast.isStale)
    #expect(try await client.fetch(GreetingQuery()) == "Hello, Bergen!")
    try await client.fetch(ForecastQuery(place: "Bergen"))
    #expect(try await client.fetch(GreetingQuery()) == "Hello, Bergen! It has 20.0 °C.")
  }

  @Test("A client is inspected at a path of its choice, and by one inspector at a time")
  func inspecting() throws {
    let client = makeInspectableClient()
    let path = "/tmp/operation-snippets-\(UInt64.random(in: 0 ... .max)).sock"
    let inspector = try serveCarefully(client, at: path)
    #expect(inspector.path == path)
    #expect(serve(client) == nil)
    inspector.cancel()
    #expect(serve(client) != nil)
  }
}
