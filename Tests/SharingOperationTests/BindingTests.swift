import Observation
import SharingOperation
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct DelayedConstruction {
  let client = OperationClient.quiet()

  @MainActor
  @Observable
  final class Model {
    @ObservationIgnored @SharedQuery<NumberQuery.State> var numbers

    func show(_ number: Int, in client: OperationClient) {
      _numbers = SharedQuery(wrappedValue: nil, NumberQuery(number: number), client: client)
    }
  }

  @Test("An assignment of another wrapper notifies all readers of the old one") @MainActor
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

  @Test("An assignment notifies at once, also while a projected value of the old wrapper is in use")
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

  @Test("A replaced wrapper has no subscription") @MainActor
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

@Suite(.timeLimit(.minutes(5))) struct BindingToRequests {
  let client = OperationClient.quiet()

  func store(_ number: Int) -> OperationStore<NumberQuery.State> {
    client.store(for: NumberQuery(number: number))
  }

  @Test("A binding keeps the client, and moves the subscription")
  func moves() {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    wrapper.projectedValue.bind(to: NumberQuery(number: 2))
    #expect(wrapper.store === store(2))
    #expect(store(1).subscriberCount == 0)
    #expect(store(2).subscriberCount == 1)
  }

  @Test("A binding releases the store that the wrapper was created with, and its request")
  func releasesFirstStore() {
    weak var first: OperationStore<NumberQuery.State>?
    let wrapper: SharedQuery<NumberQuery.State>
    do {
      let store = OperationStore.detached(query: NumberQuery(number: 1), initialValue: [4])
      // Later requests are bound in the present client.
      wrapper = OperationClient.withCurrent(OperationClient(defaults: .testing)) {
        SharedQuery(store)
      }
      first = store
    }
    let projected = wrapper.projectedValue
    #expect(first != nil)
    #expect(wrapper.wrappedValue == [4])
    projected.bind(to: NumberQuery(number: 2))
    #expect(first == nil)
    #expect(projected.wrappedValue == wrapper.wrappedValue)
  }

  @Test("A wrapper can be bound to another store and back, and displays the present value")
  func back() {
    store(1).currentValue = [1]
    store(2).currentValue = [2]
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    for (number, value) in [(2, [2]), (1, [1]), (2, [2])] {
      let reader = track { _ = wrapper.wrappedValue }
      wrapper.projectedValue.bind(to: NumberQuery(number: number))
      #expect(wrapper.wrappedValue == value)
      #expect(reader.count == 1)
    }
  }

  @Test("A binding to the bound store changes nothing and notifies no reader")
  func same() {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    let state = track { _ = wrapper.projectedValue.state }
    let backed = track { _ = wrapper.projectedValue.isBacked }
    wrapper.projectedValue.bind(to: NumberQuery(number: 1))
    #expect(state.count == 0)
    #expect(backed.count == 0)
    #expect(store(1).subscriberCount == 1)
  }

  @Test("A binding notifies the readers of members that differ, and no others")
  func differs() {
    store(1).currentValue = [7]
    store(2).currentValue = [7]
    store(3).currentValue = [8]
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    let value = track { _ = wrapper.wrappedValue }
    let flag = track { _ = wrapper.projectedValue.isLoading }
    let backed = track { _ = wrapper.projectedValue.isBacked }
    wrapper.projectedValue.bind(to: NumberQuery(number: 2))
    #expect(value.count == 0)
    wrapper.projectedValue.bind(to: NumberQuery(number: 3))
    #expect(value.count == 1)
    #expect(flag.count == 0)
    #expect(backed.count == 0)
    wrapper.projectedValue.bind(to: nil)
    #expect(backed.count == 1)
  }

  @Test("A binding notifies a reader of a value that is not Equatable, also with equal counts")
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

  @Test("A binding notifies a reader of the error")
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

  @Test("A binding of an unbacked wrapper notifies readers of isBacked and of the store")
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

  @Test("A binding notifies a reader that read a value before its delivery")
  func readBeforeDelivery() async {
    let started = Door()
    let release = DispatchGate()
    let store = store(1)
    store.currentValue = [1]
    self.store(2).currentValue = [1]
    let slow = store.subscribe { event in
      guard event.state?.currentValue == [5] else { return }
      started.open()
      release.wait()
    }
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    async let write: Void = onThreads(1) { _ in store.currentValue = [5] }
    await started.passed()
    let value = track { #expect(wrapper.wrappedValue == [5]) }
    wrapper.projectedValue.bind(to: NumberQuery(number: 2))
    #expect(wrapper.wrappedValue == [1])
    #expect(value.count == 1)
    release.open()
    await write
    slow.cancel()
  }

  @Test("Later states of the old store do not reach the readers")
  func oldStore() {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    wrapper.projectedValue.bind(to: NumberQuery(number: 2))
    let state = track { _ = wrapper.projectedValue.state }
    store(1).currentValue = [1]
    #expect(state.count == 0)
    #expect(wrapper.wrappedValue == nil)
  }

  @Test(
    "Concurrent bindings and writes leave one subscription, to the bound store",
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

  @Test("After concurrent bindings, the subscription is to the bound store")
  func concurrentOpenEnd() async {
    for _ in 0..<40 {
      let wrapper = SharedQuery(NumberQuery(number: 0), client: client)
      await onThreads(8) { wrapper.projectedValue.bind(to: NumberQuery(number: $0)) }
      let counts = (0..<8).map { store($0).subscriberCount }
      #expect(counts.reduce(0, +) == 1)
      #expect(wrapper.store?.subscriberCount == 1)
    }
  }

  @Test("A reader that tracks again during concurrent bindings is notified of the next one")
  func readersDuringBindings() async {
    for number in 0..<8 { store(number).currentValue = [number] }
    let wrapper = SharedQuery(NumberQuery(number: 0), client: client)
    let shown = Log<[Int]?>()
    let stopped = Counter()
    @Sendable func follow() {
      let value = withObservationTracking {
        wrapper.wrappedValue
      } onChange: {
        // A reader that never stops tracking retains the wrapper for ever.
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

  @Test("A wrapper that is bound to the same store with other rules keeps the run in flight")
  func otherRules() async {
    let client = OperationClient.eager()
    let (calls, door) = (Counter(), Door())
    let request = Query(path: ["counted"]) { _ in
      calls.increment()
      await door.passed()
      return 1
    }
    let wrapper = SharedQuery(request, client: client)
    while calls.count < 1 { await Task.yield() }
    wrapper.bind(to: request.stale(after: .seconds(60)))
    #expect(wrapper.isLoading)
    door.open()
    while wrapper.wrappedValue == nil { await Task.yield() }
    #expect(calls.count == 1)
  }

  @Test("Values that cannot be compared are not repeated while an earlier one is displayed")
  func opaqueWithPrevious() async throws {
    let wrapper = SharedQuery(Query.opaque(1), client: client)
    wrapper.withLock { $0 = Opaque(number: 1) }
    wrapper.bind(to: Query.opaque(2), keepingPrevious: true)
    let elements = Log<Int?>()
    var iterator = wrapper.values.map { value in
      elements.append(value?.number)
      return value
    }.makeAsyncIterator()
    _ = await iterator.next()
    try await wrapper.fetch()
    #expect(elements.elements == [1, 2])
  }

  @Test(
    "An edit of a store without a value, whose work fails, leaves the earlier value displayed",
    arguments: [nil, 1])
  func failedEditOverNothing(removed: Int?) async {
    let client = OperationClient.quiet()
    let wrapper = SharedQuery(WrittenNumber(path: ["written", "a"]), client: client)
    wrapper.withLock { $0 = 5 }
    let other = SharedQuery(
      wrappedValue: removed, WrittenNumber(path: ["written", "b"]), client: client)
    other.setResult(to: .success(nil))
    wrapper.bind(to: WrittenNumber(path: ["written", "b"]), keepingPrevious: true)
    await #expect(throws: Refusal.self) {
      try await wrapper.optimistically({ $0 = 9 }) { () async throws(Refusal) in
        #expect(wrapper.wrappedValue == 9)
        throw Refusal(reason: "no")
      }
    }
    #expect(wrapper.wrappedValue == 5 && wrapper.isPrevious)
  }

  @Test("An initial value that was replaced by none is not an earlier value, and hides none")
  func removedInitialValue() {
    let client = OperationClient.quiet()
    let wrapper = SharedQuery(
      wrappedValue: 1, WrittenNumber(path: ["written", "a"]), client: client)
    wrapper.withLock { $0 = nil }
    wrapper.bind(to: WrittenNumber(path: ["written", "b"]), keepingPrevious: true)
    #expect(wrapper.wrappedValue == nil && !wrapper.isPrevious)
    wrapper.withLock { $0 = 2 }
    wrapper.bind(to: WrittenNumber(path: ["written", "a"]), keepingPrevious: true)
    #expect(wrapper.wrappedValue == 2 && wrapper.isPrevious)
  }

  @Test("A binding that a reader replaces at once does not run its request")
  func replacedByReader() {
    let client = OperationClient.eager()
    @Sendable func query(_ number: Int) -> Query<Int, any Error> {
      Query(path: ["query", number]) { _ in number }
    }
    let second = client.store(for: query(2).manual())
    let starts = Log<Int>()
    let subscription = second.states.source.subscribe { signal in
      if case .element(let state, _) = signal, state.isLoading { starts.append(2) }
    }
    let wrapper = SharedQuery(query(1).manual(), client: client)
    withObservationTracking {
      _ = wrapper.store
    } onChange: {
      wrapper.bind(to: query(3).manual())
    }
    wrapper.bind(to: query(2))
    #expect(wrapper.store === client.store(for: query(3)))
    #expect(starts.elements.isEmpty)
    withExtendedLifetime(subscription) {}
  }
}
