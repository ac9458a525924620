import Observation
import Synchronization
import Testing

@testable import SharingOperation

@Suite(.timeLimit(.minutes(5))) struct Lifetime {
  let client = OperationClient.quiet()

  struct Holder: Sendable {
    @SharedQuery<NumberQuery.State> var numbers

    init(_ client: OperationClient) {
      _numbers = SharedQuery(NumberQuery(number: 1), client: client)
    }
  }

  @Test("All copies of a wrapper share one subscription, until the last copy is released")
  func copies() {
    let store = client.store(for: NumberQuery(number: 1))
    var copies: [Holder] = []
    do {
      let first = Holder(client)
      copies = Array(repeating: first, count: 50)
      _ = copies.map { $0.$numbers.isLoading }
      #expect(store.subscriberCount == 1)
    }
    #expect(store.subscriberCount == 1)
    copies.removeLast(49)
    #expect(store.subscriberCount == 1)
    #expect(copies[0].numbers == nil)
    copies = []
    #expect(store.subscriberCount == 0)
  }

  @Test("Concurrent copies leave no subscription")
  func copiesOnThreads() async {
    let store = client.store(for: NumberQuery(number: 1))
    do {
      let holder = Holder(client)
      await onThreads(8) { _ in
        for _ in 0..<100 {
          let copy = holder
          _ = copy.numbers
          withExtendedLifetime(copy.$numbers) {}
        }
      }
      #expect(store.subscriberCount == 1)
    }
    #expect(store.subscriberCount == 0)
  }

  @Test("A wrapper that is released while it is bound on another thread leaves no subscription")
  func releasedDuringBinding() async {
    for _ in 0..<40 {
      let name = SharedQuery(wrappedValue: "0", NameQuery(), client: client)
      let dependent = Log<SharedQuery<NumberQuery.State>>()
      dependent.append(SharedQuery(dependingOn: name) { NumberQuery(number: Int($0) ?? 0) })
      await onThreads(4) { number in
        if number == 3 {
          dependent.removeAll()
        } else {
          name.store?.currentValue = "\(number)"
        }
      }
      let counts = (0..<4).map { client.store(for: NumberQuery(number: $0)).subscriberCount }
      #expect(counts == [0, 0, 0, 0])
    }
  }

  @Test("A wrapper that is released inside onChange ends its subscription at once")
  func releasedInOnChange() {
    let store = client.store(for: NumberQuery(number: 1))
    let holders = Log<Holder>()
    holders.append(Holder(client))
    let counts = Log<Int>()
    withObservationTracking {
      _ = holders.elements.first?.numbers
    } onChange: {
      holders.removeAll()
      counts.append(store.subscriberCount)
    }
    store.currentValue = [1]
    // The release notifies the reader again, inside `onChange`, before the subscription ends.
    #expect(counts.elements.last == 0)
  }

  @Test("A projected value keeps the subscription, and notifies its readers when it is released")
  func projected() {
    let store = client.store(for: NumberQuery(number: 1))
    var projected: SharedQuery<NumberQuery.State>?
    do {
      let holder = Holder(client)
      projected = holder.$numbers
    }
    #expect(store.subscriberCount == 1)
    let value = track { _ = projected?.wrappedValue }
    projected = nil
    #expect(store.subscriberCount == 0)
    #expect(value.count == 1)
  }

  @Test("A wrapper, its stores and its client are deallocated")
  func nothingLeaks() async throws {
    weak var core: SharedQueryCore<NumberQuery.State>?
    weak var store: OperationStore<NumberQuery.State>?
    weak var other: OperationStore<NumberQuery.State>?
    weak var client: OperationClient?
    do {
      let own = OperationClient.quiet()
      let wrapper = SharedQuery(NumberQuery(number: 1), client: own)
      let dependent = SharedQuery(dependingOn: wrapper) { NumberQuery(number: $0.count) }
      (core, client, store) = (wrapper.core, own, wrapper.store)
      try await wrapper.projectedValue.fetch()
      try await dependent.projectedValue.fetch()
      other = dependent.store
      _ = track { _ = (wrapper.wrappedValue, wrapper.projectedValue.status) }
      var values = wrapper.projectedValue.values.makeAsyncIterator()
      #expect(await values.next() == .some([1, 1]))
      wrapper.projectedValue.bind(to: NumberQuery(number: 5))
      #expect(core != nil && client != nil && store != nil && other != nil)
    }
    // The task of a run may not have ended yet.
    while core != nil || client != nil || store != nil || other != nil { await Task.yield() }
  }

  @Test("A stream continues with a subscription of its own, and does not retain its wrapper")
  func streamOutlives() async {
    let store = client.store(for: NumberQuery(number: 1))
    weak var core: SharedQueryCore<NumberQuery.State>?
    func makeIterator() -> StateStream<[Int]?>.Iterator {
      let holder = Holder(client)
      core = holder.$numbers.core
      return holder.$numbers.values.makeAsyncIterator()
    }
    var values = makeIterator()
    #expect(core == nil)
    #expect(store.subscriberCount == 1)
    #expect(await values.next() == .some(nil))
    store.currentValue = [1]
    #expect(await values.next() == .some([1]))
  }

  @Test("A stream that begins after the end of its wrapper stays with the last store")
  func streamAfterEnd() async {
    let name = SharedQuery(wrappedValue: "1", NameQuery(), client: client)
    let makings = Log<String>()
    var dependent: SharedQuery<NumberQuery.State>? = SharedQuery(dependingOn: name) { name in
      makings.append(name)
      return NumberQuery(number: Int(name) ?? 0)
    }
    let values = dependent?.projectedValue.values
    client.store(for: NumberQuery(number: 1)).currentValue = [1]
    client.store(for: NumberQuery(number: 2)).currentValue = [2]
    dependent = nil
    name.store?.currentValue = "2"
    var iterator = values?.makeAsyncIterator()
    #expect(await iterator?.next() == [1])
    #expect(makings.elements == ["1"])
  }

  @Test("The subscription of a stream ends with its iterator")
  func streamEnds() async {
    let store = client.store(for: NumberQuery(number: 1))
    do {
      var values = Holder(client).$numbers.values.makeAsyncIterator()
      _ = await values.next()
    }
    #expect(store.subscriberCount == 0)
  }
}

@Suite(.timeLimit(.minutes(5))) struct AutomaticRuns {
  @Test("A wrapper of a stale store starts a run, and holds a lease on it")
  func runs() async {
    let started = Door()
    let release = Door()
    let ended = Door()
    let client = OperationClient.eager()
    let query = Query(path: ["auto"]) { _ -> Int in
      started.open()
      await release.passed()
      return 3
    }.handleEvents { event in
      if case .runEnded = event { ended.open() }
    }
    let wrapper = SharedQuery(query, client: client)
    await started.passed()
    #expect(wrapper.projectedValue.isLoading)
    #expect(wrapper.store?.leaseCount == 1)
    release.open()
    await ended.passed()
    var values = wrapper.projectedValue.values.makeAsyncIterator()
    while await values.next() != .some(3) {}
    #expect(wrapper.wrappedValue == 3)
    #expect(wrapper.store?.leaseCount == 0)
  }

  @Test("A run without other leases is cancelled when the wrapper is released")
  func cancelledWithWrapper() async throws {
    let clock = ManualClock()
    let outcome = Log<Bool>()
    let ended = Door()
    let client = OperationClient.eager(clock: clock)
    let query = Query(path: ["auto"]) { context -> Int in
      do {
        try await context.operationClock.sleep(for: .seconds(60))
      } catch {
        outcome.append(Task.isCancelled)
        ended.open()
        throw error
      }
      return 3
    }
    do {
      let wrapper = SharedQuery(query, client: client)
      await clock.sleepers(atLeast: 1)
      #expect(wrapper.store?.leaseCount == 1)
    }
    await ended.passed()
    #expect(outcome.elements == [true])
    let store = client.store(for: query)
    #expect(store.currentValue == nil)
    #expect(store.error == nil)
    #expect(!store.isLoading)
  }

  @Test("A run that another caller awaits continues without the wrapper")
  func awaitedSurvives() async throws {
    let clock = ManualClock()
    let client = OperationClient.eager(clock: clock)
    let query = Query(path: ["auto"]) { context -> Int in
      try await context.operationClock.sleep(for: .seconds(60))
      return 3
    }
    let store = client.store(for: query)
    var wrapper: SharedQuery<QueryState<Int, any Error>>? = SharedQuery(query, client: client)
    await clock.sleepers(atLeast: 1)
    let run = Task { try await store.run() }
    while store.leaseCount < 2 { await Task.yield() }
    withExtendedLifetime(wrapper) {}
    wrapper = nil
    #expect(store.leaseCount == 1)
    await clock.advance(by: .seconds(60))
    #expect(try await run.value == 3)
  }

  @Test("A binding cancels the automatic run of the old store, and starts one of the new store")
  func bindingMovesTheRun() async {
    let clock = ManualClock()
    let client = OperationClient.eager(clock: clock)
    @Sendable func query(_ number: Int) -> Query<Int, any Error> {
      Query(path: ["auto", number]) { context in
        try await context.operationClock.sleep(for: .seconds(number))
        return number
      }
    }
    let wrapper = SharedQuery(query(1), client: client)
    await clock.sleepers(atLeast: 1)
    let old = wrapper.store
    wrapper.projectedValue.bind(to: query(2))
    #expect(old?.isLoading == false)
    #expect(wrapper.projectedValue.isLoading)
    var values = wrapper.projectedValue.values.makeAsyncIterator()
    #expect(await values.next() == .some(nil))
    // The old run removes its sleep when its task ends. Then one sleep remains, of the new run.
    while clock.sleeperCount != 1 || old?.isLoading != false { await Task.yield() }
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(1))
    #expect(old?.currentValue == nil)
    await clock.advance(by: .seconds(1))
    while wrapper.wrappedValue == nil { await Task.yield() }
    #expect(wrapper.wrappedValue == 2)
  }

  @Test("A wrapper starts no run of a fresh store, or without automatic running")
  func fresh() {
    let client = OperationClient.eager()
    let query = NumberQuery(number: 1).neverStale()
    client.store(for: query).currentValue = [1]
    let wrapper = SharedQuery(query, client: client)
    #expect(!wrapper.projectedValue.isLoading)
    #expect(!wrapper.projectedValue.isStale)
    let quiet = SharedQuery(NumberQuery(number: 1), client: .quiet())
    #expect(!quiet.projectedValue.isLoading)
    #expect(quiet.projectedValue.isStale)
  }

  @Test("An invalidation through the wrapper starts a run, because the wrapper observes")
  func invalidate() async {
    let clock = ManualClock()
    let runs = Counter()
    let client = OperationClient.eager(clock: clock)
    let query = Query(path: ["auto"]) { _ in runs.increment() }.neverStale()
    client.store(for: query).currentValue = 0
    let wrapper = SharedQuery(query, client: client)
    #expect(runs.count == 0)
    wrapper.projectedValue.invalidate()
    var values = wrapper.projectedValue.values.makeAsyncIterator()
    while await values.next() != .some(1) {}
    #expect(runs.count == 1)
    #expect(!wrapper.projectedValue.isStale)
  }
}
