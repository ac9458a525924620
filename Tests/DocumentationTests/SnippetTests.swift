import SharingOperation
import Synchronization
import Testing

@testable import Snippets

@Suite struct SnippetTests {
  @Test("A fresh forecast is not fetched again, and one that is ten minutes old is")
  func freshness() async throws {
    let calls = Atomic(0)
    let clock = ManualClock()
    let client = makeClient(clock: clock) {
      $0.weather = WeatherService { place in
        calls.wrappingAdd(1, ordering: .relaxed)
        return Forecast(place: place, celsius: 20)
      }
    }
    for _ in 1...2 { _ = try await freshForecast(for: "Oslo", in: client) }
    #expect(calls.load(ordering: .relaxed) == 1)
    await clock.advance(by: .seconds(600))
    _ = try await freshForecast(for: "Oslo", in: client)
    #expect(calls.load(ordering: .relaxed) == 2)
    correct(client.store(for: ForecastQuery(place: "Oslo")), by: 1.5)
    #expect(client.store(for: ForecastQuery(place: "Oslo")).currentValue?.celsius == 21.5)
  }

  @Test("A typed failure is caught by its cases") func typedFailure() async {
    let client = makeClient()
    #expect(await level(of: "Rhine", in: client) == 3.5)
    #expect(await level(of: "Styx", in: client) == nil)
  }

  @Test("Stores are found by a prefix of their paths") func matching() async throws {
    let client = makeClient()
    #expect(warmestPlace(in: client) == nil)
    let store = client.store(for: temperature(in: "Oslo").neverStale())
    try await store.fetch()
    #expect(warmestPlace(in: client) == 20)
    #expect(!store.isStale)
    refreshTemperatures(in: client)
    #expect(store.isStale)
  }

  @Test("A request without a store finds its service in the context") func storeless() async throws
  {
    let service = WeatherService { place in Forecast(place: place, celsius: -3) }
    #expect(try await forecastOnce(for: "Oslo", from: service).celsius == -3)
  }
}

extension SnippetTests {
  @Test("Pages are fetched on both sides of the first one") func pages() async throws {
    let client = makeClient {
      $0.archive.letters = { year in [Letter(id: year, text: "Dear reader")] }
    }
    let store = client.store(for: LettersRequest(years: 1899...1901, initialPageId: 1900))
    try await readAround(store)
    #expect(store.currentValue.ids == [1899, 1900, 1901])
    let all = client.store(for: LettersRequest(years: 1890...1892, initialPageId: 1890))
    #expect(try await readAll(all).map(\.id) == [1890, 1891, 1892])
    #expect(!store.hasNextPage && !store.hasPreviousPage)
    remove(1900, from: store)
    #expect(store.currentValue[id: 1900]?.value == [])
    #expect(store.currentValue[id: 1901]?.value.count == 1)
  }

  @Test("Pages are fetched by the cursor of the page before") func cursor() async throws {
    let client = makeClient {
      $0.archive.search = { _, cursor in
        SearchResult(letters: [], nextCursor: cursor.isEmpty ? "more" : nil)
      }
    }
    let store = client.store(for: lettersAbout("weather"))
    for _ in 1...3 { try await store.fetchNextPage() }
    #expect(store.currentValue.ids == ["", "more"])
    #expect(try await store.fetchNextPage() == nil)
  }

  @Test("Of many pages, the last two are fetched again") func bounds() async throws {
    let years = Mutex<[Int]>([])
    let client = makeClient {
      $0.archive.letters = { year in
        years.withLock { $0.append(year) }
        return []
      }
    }
    let store = client.store(for: recentLetters())
    for _ in 1...6 { try await store.fetchNextPage() }
    #expect(store.currentValue.ids == [1901, 1902, 1903, 1904, 1905])
    try await store.fetch()
    #expect(years.withLock { $0.suffix(2) } == [1904, 1905])
    #expect(store.currentValue.ids == [1901, 1902, 1903, 1904, 1905])
  }
}

extension SnippetTests {
  @Test("The history has the three failed reservations of a guest")
  func history() async throws {
    struct Full: Error {}
    let client = makeClient { $0.restaurant.reserve = { _, _ in throw Full() } }
    let store = client.store(for: Reserve())
    let arguments = Reserve.Arguments(guest: "Ada", seats: 2)
    for _ in 1...2 { await #expect(throws: Full.self) { try await store.mutate(with: arguments) } }
    #expect(!hasFailedOften("Ada", in: store))
    await #expect(throws: Full.self) { try await store.retryLatest() }
    #expect(hasFailedOften("Ada", in: store))
  }

  @Test("A reservation makes the free seats stale") func reservation() async throws {
    let client = makeClient()
    let seats = client.store(for: FreeSeatsQuery().neverStale())
    try await seats.fetch()
    #expect(!seats.isStale)
    try await reserveTwice(in: client)
    #expect(!seats.isStale)
    let store = client.store(for: reserveAndInvalidate())
    try await store.mutate(with: Reserve.Arguments(guest: "Ada", seats: 2))
    #expect(seats.isStale)
  }

  @Test("A mutation without arguments is called, and a request of any type is taken")
  func otherForms() async throws {
    let client = makeClient { $0.restaurant.reserve = { Reservation(guest: $0, seats: $1) } }
    #expect(try await reserveForStaff(in: client) == Reservation(guest: "staff", seats: 6))
    let request = possiblyPolledForecast(for: "Oslo", isPolled: false)
    let forecast = try await client.ensure(request)
    #expect(client.store(for: request).currentValue == forecast)
    let wrapper = SharedQuery(request, client: client)
    #expect(wrapper.wrappedValue == forecast)
    wrapper.projectedValue.bind(to: possiblyPolledForecast(for: "Oslo", isPolled: true))
    #expect(wrapper.wrappedValue == forecast)
  }

  @Test("A saved forecast is displayed before the new one") func severalValues() async throws {
    let client = makeClient {
      $0.disk.savedForecast = { place in Forecast(place: place, celsius: 1) }
    }
    let shown = Mutex<[Double?]>([])
    let store = client.store(for: SavedForecastQuery(place: "Oslo"))
    try await store.fetch { event in
      if let state = event.state {
        shown.withLock { $0.append(state.currentValue?.celsius) }
      }
    }
    #expect(shown.withLock { $0 }.compactMap { $0 }.first == 1)
    #expect(store.currentValue?.celsius == 20)
  }

  @Test("A cancelled run removes the value that it has yielded") func takingBack() async throws {
    let client = makeClient {
      $0.disk.savedForecast = { place in Forecast(place: place, celsius: 1) }
      $0.weather = WeatherService { _ in
        try await ManualClock().sleep(for: .seconds(1))
        throw CancellationError()
      }
    }
    let store = client.store(for: SavedForecastQuery(place: "Oslo"))
    var forecasts = store.values.compactMap { $0 }.makeAsyncIterator()
    #expect(await forecasts.next()?.celsius == 1)
    #expect(store.isLoading)
    store.cancel()
    #expect(store.currentValue == nil && store.error == nil && !store.isLoading)
  }

  @Test("A download yields its progress") func progress() async throws {
    let chunks: @Sendable () -> AsyncStream<[UInt8]> = {
      AsyncStream { chunks in
        for chunk in [[0, 0, 0], [1]] as [[UInt8]] { chunks.yield(chunk) }
        chunks.finish()
      }
    }
    let yielded = Mutex<[Download]>([])
    let value = try await download("file", chunks: chunks, size: 4).run(
      with: OperationContinuation { result in
        if case .success(let value) = result { yielded.withLock { $0.append(value) } }
      })
    #expect(value == .done(bytes: [0, 0, 0, 1]))
    #expect(yielded.withLock { $0 } == [.under(percent: 75), .under(percent: 100)])
  }
}

extension SnippetTests {
  @Test("A dependent query reads the cached value, and does not fetch it again")
  func dependence() async throws {
    let calls = Atomic(0)
    let client = makeClient {
      $0.addressBook.home = {
        calls.wrappingAdd(1, ordering: .relaxed)
        return Address(place: "Lisbon")
      }
    }
    #expect(try await client.store(for: HomeForecastQuery()).fetch().place == "Lisbon")
    _ = try await client.store(for: HomeForecastQuery()).fetch()
    #expect(calls.load(ordering: .relaxed) == 1)
    #expect(try await client.store(for: OverviewQuery()).fetch().forecast?.place == "Lisbon")
    var forecasts = homeForecasts(in: client).makeAsyncIterator()
    while let forecast = await forecasts.next(), forecast == nil {}
    #expect(client.store(for: ForecastQuery(place: "Lisbon")).currentValue != nil)
  }

  @Test("A wrapper follows another one") func wrapper() async throws {
    try await OperationClient.withCurrent(makeClient()) {
      let model = HomeModel()
      try await model.$home.fetch()
      var forecasts = model.$forecast.values.compactMap { $0 }.makeAsyncIterator()
      #expect(await forecasts.next()?.place == "Bergen")
      #expect(model.forecast?.place == "Bergen")
    }
  }

  @Test("Tiles are fetched one by one, and after an overview in flight")
  func tiles() async throws {
    let client = makeClient()
    #expect(try await soil(at: Square(column: 2, row: 5), in: client) == "clay")
    let store = client.store(for: SoilMap())
    let overview = store.runTask()
    #expect(try await store.fetchTile(Square(column: 3, row: 5)) == "sand")
    #expect(overview.isFinished)
    #expect(store.currentValue.count == 4)
    let tiles = [1, 1, 2].map { column in
      store.runTask(using: store.context.asking(for: Square(column: column, row: 9)))
    }
    #expect(tiles[0].id == tiles[1].id && tiles[0].id != tiles[2].id)
    let count = Atomic(0)
    _ = try await SoilMap().counted { count.wrappingAdd(1, ordering: .relaxed) }.run()
    #expect(count.load(ordering: .relaxed) == 1)
    store.resetState()
    #expect(store.currentValue.isEmpty)
  }
}

extension SnippetTests {
  @Test("A door is followed by loops, handlers and operators") func streams() async {
    let (left, right) = (Door(), Door())
    var both = bothOpen(left, right).makeAsyncIterator()
    var last = lastMoves(of: left).makeAsyncIterator()
    let greetings = Atomic(0)
    let porter = Porter([left, right]) { greetings.wrappingAdd(1, ordering: .relaxed) }
    left.isOpen.send(true)
    right.pass()
    left.pass()
    #expect([await both.next(), await both.next()] == [true, false])
    #expect([await last.next(), await last.next()] == [true, false])
    #expect(greetings.load(ordering: .relaxed) == 3)
    withExtendedLifetime(porter) {}
  }

  @Test("The moves of the chosen door are delivered") func chosenDoor() async {
    let doors = Broadcast<Door>()
    let door = Door()
    var sent = moves(ofThe: doors).makeAsyncIterator()
    doors.send(door)
    door.pass()
    #expect([await sent.next(), await sent.next()] == ["open", "shut"])
  }

  @Test("A wrapper is bound later, has a default, and displays pages") @MainActor
  func wrappers() async throws {
    try await OperationClient.withCurrent(makeClient()) {
      let chosen = ChosenPlaceModel()
      #expect(!chosen.$forecast.isBacked)
      chosen.choose("Oslo")
      try await chosen.$forecast.fetch()
      #expect(chosen.forecast?.place == "Oslo")
      let places = Places()
      try await places.$names.fetch()
      #expect(places.count == 2)
      let letters = LettersModel()
      try await letters.more()
      #expect(letters.letters.isEmpty && !letters.years.isEmpty)
      let neighbours = NeighbourModel()
      try await neighbours.$here.fetch()
      var there = neighbours.$there.values.compactMap { $0 }.makeAsyncIterator()
      #expect(await there.next()?.place == "Tromsø")
    }
  }

  @Test("A model has the client that it is created with") @MainActor
  func clientOfModel() async throws {
    let client = makeClient()
    let model = PlaceModel(place: "Oslo", client: client)
    model.$chosen.bind(to: ForecastQuery(place: "Rome"))
    #expect(model.$forecast.store === client.store(for: ForecastQuery(place: "Oslo")))
    #expect(model.$chosen.store === client.store(for: ForecastQuery(place: "Rome")))
    #expect(try await model.$chosen.fetch().place == "Rome")
    try await model.$forecast.fetch()
  }

  @Test("A reader of the title is notified when the forecast arrives") @MainActor
  func tracking() async throws {
    let model = Snippets.makeModel(in: makeClient())
    try await model.refresh()
    #expect(model.title == "20.0 °C")
    let printed = Broadcast<String>()
    var lines = printed.values.makeAsyncIterator()
    printNextChange(of: model) { printed.send($0) }
    #expect(await lines.next() == "20.0 °C")
    model.$forecast.setResult(to: .success(Forecast(place: "Bergen", celsius: 3)))
    #expect(await lines.next() == "there is a new title")
    #expect(model.title == "3.0 °C")
  }
}

/// A client without retries whose context is written by a test.
func makeClient(
  clock: ManualClock = ManualClock(), _ write: (inout OperationContext) -> Void = { _ in }
) -> OperationClient {
  var context = OperationContext()
  write(&context)
  return OperationClient(defaults: .testing, clock: clock, context: context)
}
