import Observation
import SharingOperation
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1))) struct DelayedConstruction {
  let client = OperationClient.quiet()

  @MainActor
  @Observable
  final class Model {
    @ObservationIgnored @SharedQuery<NumberQuery.State> var numbers

    func show(_ number: Int, in client: OperationClient) {
      _numbers = SharedQuery(wrappedValue: nil, NumberQuery(number: number), client: client)
    }
  }

  @Test("Assigning another wrapper tells everybody who read the old one") @MainActor
  func assigning() {
    let model = Model()
    let reads = [
      track { _ = model.numbers }, track { _ = model.$numbers.isLoading },
      track { _ = model.$numbers.isBacked },
    ]
    model.show(1, in: client)
    #expect(reads.map(\.count) == [1, 1, 1])
    let value = track { _ = model.numbers }
    model.$numbers.withLock { $0 = [1] }
    #expect(value.count == 1)
  }

  @Test("Assigning tells at once, also while a projected value of the old wrapper is about")
  @MainActor
  func assigningWhileFetching() async throws {
    let started = Door()
    let release = Door()
    let model = OperationClient.withCurrent(client) { Model() }
    let slow = Query(path: ["slow"]) { _ -> [Int] in
      started.open()
      await release.passed()
      return [0]
    }
    model.$numbers.bind(to: slow)
    let fetch = Task { try await model.$numbers.fetch() }
    await started.passed()
    let value = track { _ = model.numbers }
    model.show(1, in: client)
    #expect(value.count == 1)
    release.open()
    #expect(try await fetch.value == [0])
    #expect(model.numbers == nil)
  }

  @Test("A wrapper that was replaced has no subscription any more") @MainActor
  func replaced() {
    let model = Model()
    model.show(1, in: client)
    let store = client.store(for: NumberQuery(number: 1))
    #expect(store.subscriberCount == 1)
    model.show(2, in: client)
    #expect(store.subscriberCount == 0)
    #expect(client.store(for: NumberQuery(number: 2)).subscriberCount == 1)
  }
}

@Suite(.timeLimit(.minutes(1))) struct BindingToRequests {
  let client = OperationClient.quiet()

  func store(_ number: Int) -> OperationStore<NumberQuery.State> {
    client.store(for: NumberQuery(number: number))
  }

  @Test("Binding keeps the wrapper's client, and moves the one subscription")
  func moves() {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    wrapper.projectedValue.bind(to: NumberQuery(number: 2))
    #expect(wrapper.store === store(2))
    #expect(store(1).subscriberCount == 0)
    #expect(store(2).subscriberCount == 1)
  }

  @Test("Binding to what is there already changes and tells nothing")
  func same() {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    let state = track { _ = wrapper.projectedValue.state }
    let backed = track { _ = wrapper.projectedValue.isBacked }
    wrapper.projectedValue.bind(to: NumberQuery(number: 1))
    #expect(state.count == 0)
    #expect(backed.count == 0)
    #expect(store(1).subscriberCount == 1)
  }

  @Test("Binding tells those who read what differs, and nobody else")
  func differs() {
    store(1).currentValue = [7]
    store(2).currentValue = [7]
    store(3).currentValue = [8]
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    let value = track { _ = wrapper.wrappedValue }
    let flag = track { _ = wrapper.projectedValue.isLoading }
    wrapper.projectedValue.bind(to: NumberQuery(number: 2))
    #expect(value.count == 0)
    wrapper.projectedValue.bind(to: NumberQuery(number: 3))
    #expect(value.count == 1)
    #expect(flag.count == 0)
  }

  @Test("Binding tells a reader of a value that cannot be compared, whatever counts and dates say")
  func opaque() {
    for number in 1...2 {
      client.store(for: Query.opaque(number)).currentValue = Opaque(number: number)
    }
    let wrapper = SharedQuery(Query.opaque(1), client: client)
    let value = track { _ = wrapper.wrappedValue }
    wrapper.projectedValue.bind(to: Query.opaque(2))
    #expect(value.count == 1)
    #expect(wrapper.wrappedValue?.number == 2)
  }

  @Test("Binding tells a reader of the error that it is another one")
  func errors() {
    for name in ["a", "b"] {
      client.store(for: Query.refused(name)).setResult(to: .failure(Refusal(reason: name)))
    }
    let wrapper = SharedQuery(Query.refused("a"), client: client)
    let error = track { _ = wrapper.projectedValue.error }
    wrapper.projectedValue.bind(to: Query.refused("b"))
    #expect(error.count == 1)
    #expect(wrapper.projectedValue.error?.reason == "b")
  }

  @Test("Binding what was unbacked tells those who asked whether it is, or for its store")
  func backed() {
    let wrapper = OperationClient.withCurrent(client) { SharedQuery<NumberQuery.State>() }
    let value = track { _ = wrapper.wrappedValue }
    let backed = track { _ = wrapper.projectedValue.isBacked }
    let store = track { _ = wrapper.projectedValue.store }
    wrapper.projectedValue.bind(to: NumberQuery(number: 1))
    #expect(value.count == 0)
    #expect(backed.count == 1)
    #expect(store.count == 1)
    #expect(wrapper.isBacked)
  }

  @Test("A reader who saw a value before it was told hears of the binding that takes it away")
  func glimpse() async {
    let entered = Door()
    let leave = DispatchGate()
    let store = store(1)
    store.currentValue = [1]
    self.store(2).currentValue = [1]
    let slow = store.subscribe { event in
      guard event.state?.currentValue == [5] else { return }
      entered.open()
      leave.wait()
    }
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    async let write: Void = onThreads(1) { _ in store.currentValue = [5] }
    await entered.passed()
    let value = track { #expect(wrapper.wrappedValue == [5]) }
    wrapper.projectedValue.bind(to: NumberQuery(number: 2))
    #expect(wrapper.wrappedValue == [1])
    #expect(value.count == 1)
    leave.open()
    await write
    slow.cancel()
  }

  @Test("What the old store tells later does not reach the readers")
  func oldStore() {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    wrapper.projectedValue.bind(to: NumberQuery(number: 2))
    let state = track { _ = wrapper.projectedValue.state }
    store(1).currentValue = [1]
    #expect(state.count == 0)
    #expect(wrapper.wrappedValue == nil)
  }

  @Test(
    "Bindings from several threads end with one subscription, to the store that is behind",
    arguments: 0..<40)
  func concurrent(round: Int) async {
    let wrapper = SharedQuery(NumberQuery(number: 0), client: client)
    await onThreads(8) { number in
      wrapper.projectedValue.bind(to: NumberQuery(number: number))
      store(number).currentValue = [number]
    }
    let last = store(3)
    wrapper.projectedValue.bind(to: NumberQuery(number: 3))
    let counts = (0..<8).map { store($0).subscriberCount }
    #expect(wrapper.store === last)
    #expect(counts == [0, 0, 0, 1, 0, 0, 0, 0])
    let value = track { _ = wrapper.wrappedValue }
    last.currentValue = [round, round]
    #expect(value.count == 1)
  }

  @Test("Without a last word, the one subscription is still to the store that is behind")
  func concurrentOpenEnd() async {
    for _ in 0..<40 {
      let wrapper = SharedQuery(NumberQuery(number: 0), client: client)
      await onThreads(8) { wrapper.projectedValue.bind(to: NumberQuery(number: $0)) }
      let counts = (0..<8).map { store($0).subscriberCount }
      #expect(counts.reduce(0, +) == 1)
      #expect(wrapper.store?.subscriberCount == 1)
    }
  }

  @Test("A reader who tracks again misses no binding that comes from other threads")
  func readersDuringBindings() async {
    for number in 0..<8 { store(number).currentValue = [number] }
    let wrapper = SharedQuery(NumberQuery(number: 0), client: client)
    let shown = Log<[Int]?>()
    let stopped = Counter()
    @Sendable func follow() {
      let value = withObservationTracking {
        wrapper.wrappedValue
      } onChange: {
        // A reader who tracks to the end keeps the wrapper for ever.
        if stopped.count == 0 { follow() }
      }
      shown.append(value)
    }
    follow()
    await onThreads(8) { wrapper.projectedValue.bind(to: NumberQuery(number: $0)) }
    let before = shown.elements.count
    let target = wrapper.wrappedValue == [1] ? 2 : 1
    wrapper.projectedValue.bind(to: NumberQuery(number: target))
    #expect(shown.elements.count > before)
    #expect(shown.elements.last == [target])
    stopped.increment()
    store(target).currentValue = nil
  }
}
