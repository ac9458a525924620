import Observation
import Synchronization
import Testing

@testable import SharingOperation

@Suite(.timeLimit(.minutes(1))) struct Lifetime {
  let client = OperationClient.quiet()

  struct Holder: Sendable {
    @SharedQuery<NumberQuery.State> var numbers

    init(_ client: OperationClient) {
      _numbers = SharedQuery(NumberQuery(number: 1), client: client)
    }
  }

  @Test("A wrapper has one subscription, however often it is copied, until its last copy goes")
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

  @Test("Copies that several threads make and drop leave nothing behind")
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

  @Test("A projected value keeps the subscription, and its readers hear of the end")
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

  @Test("Nothing of a wrapper, its store and its client is left when they are gone")
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
    // The task of a run may still be on its way out.
    while core != nil || client != nil || store != nil || other != nil { await Task.yield() }
  }

  @Test("A stream goes on when its wrapper is gone, and is no wrapper's subscription")
  func streamOutlives() async {
    let store = client.store(for: NumberQuery(number: 1))
    var values = Holder(client).$numbers.values.makeAsyncIterator()
    #expect(store.subscriberCount == 1)
    #expect(await values.next() == .some(nil))
    store.currentValue = [1]
    #expect(await values.next() == .some([1]))
  }

  @Test("A stream of another wrapper that is gone ends with its iterator")
  func streamEnds() async {
    let store = client.store(for: NumberQuery(number: 1))
    do {
      var values = Holder(client).$numbers.values.makeAsyncIterator()
      _ = await values.next()
    }
    #expect(store.subscriberCount == 0)
  }
}

@Suite(.timeLimit(.minutes(1))) struct AutomaticRuns {
  @Test("Making a wrapper of a stale store runs it, and the wrapper holds the lease")
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

  @Test("A run that only the wrapper holds is cancelled with it")
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

  @Test("A run that somebody awaits, too, survives the wrapper")
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

  @Test("Binding cancels the automatic run that is left, and starts the new one")
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
    // The sleep of the old run goes when its task notices; then that of the new one is alone.
    while clock.sleeperCount != 1 || old?.isLoading != false { await Task.yield() }
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(1))
    #expect(old?.currentValue == nil)
    await clock.advance(by: .seconds(1))
    while wrapper.wrappedValue == nil { await Task.yield() }
    #expect(wrapper.wrappedValue == 2)
  }

  @Test("A fresh store does not run for a wrapper, and a quiet client runs for none")
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

  @Test("Invalidating through the wrapper runs the request, because the wrapper observes")
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
