import Observation
import SharingOperation
import Testing

@MainActor
@Observable
final class MainModel {
  @ObservationIgnored @SharedQuery(NumberQuery(number: 1)) var optional
  @ObservationIgnored @SharedQuery(NumberQuery(number: 2), default: []) var defaulted
  @ObservationIgnored @SharedQuery(NumberQuery(number: 3)) var initial = [3]
  @ObservationIgnored @SharedQuery<NumberQuery.State> var delayed
}

final class PlainModel {
  @SharedQuery(NumberQuery(number: 1)) var numbers

  func refresh() async throws { try await $numbers.fetch() }
}

struct StructModel: Sendable {
  @SharedQuery(NumberQuery(number: 1)) var numbers
  @SharedQuery<NumberQuery.State> var delayed
}

@Suite struct Creating {
  let client = OperationClient.quiet()

  @Test("A wrapper without a store is bound in the client that it was given")
  func unbackedInClient() async throws {
    @SharedQuery<NumberQuery.State> var numbers
    _numbers = SharedQuery(client: client)
    #expect(numbers == nil && !$numbers.isBacked)
    let projected = $numbers
    await #expect(throws: SharedQueryError.unbacked) { try await projected.fetch() }
    projected.bind(to: NumberQuery(number: 2))
    #expect(projected.store === client.store(for: NumberQuery(number: 2)))
    try await projected.fetch()
    #expect(numbers == [2, 2])
  }

  @Test("A wrapper with a default can begin without a store, in a client or without one")
  func unbackedWithDefault() async throws {
    @SharedQuery<DefaultState<NumberQuery.State>>(default: [7]) var numbers
    #expect(numbers == [7] && !$numbers.isBacked)
    _numbers = SharedQuery(default: [8], client: client)
    #expect(numbers == [8] && !$numbers.isBacked)
    let projected = $numbers
    await #expect(throws: SharedQueryError.unbacked) { try await projected.fetch() }
    projected.bind(to: NumberQuery(number: 2))
    #expect(projected.store === client.store(for: NumberQuery(number: 2)))
    #expect(numbers == [8])
    try await projected.fetch()
    #expect(numbers == [2, 2])
    _numbers = SharedQuery(NumberQuery(number: 3), default: [9], client: client)
    #expect(numbers == [9] && $numbers.isBacked)
  }

  @Test("A wrapper of a part of a value can begin without a store")
  func unbackedPart() async throws {
    @SharedQuery<SelectedState<NumberQuery.State, Int?>> var count
    #expect(count == nil && !$count.isBacked)
    _count = SharedQuery(NumberQuery(number: 2), client: client) { $0.count }
    #expect(count == nil && $count.isBacked)
    let projected = $count
    try await projected.fetch()
    #expect(count == 2)
  }

  @Test("A wrapper can be used in an observable class on the main actor") @MainActor
  func mainActor() async throws {
    try await OperationClient.withCurrent(client) {
      let model = MainModel()
      #expect(model.optional == nil)
      #expect(model.defaulted == [])
      #expect(model.initial == [3])
      #expect(model.delayed == nil)
      try await model.$optional.fetch()
      try await model.$defaulted.fetch()
      try await model.$initial.fetch()
      #expect(model.optional == [1, 1])
      #expect(model.defaulted == [2, 2])
      #expect(model.initial == [3, 3])
      #expect(!model.$delayed.isBacked)
    }
  }

  @Test("A wrapper can be used in a plain class, a struct and a local variable")
  func elsewhere() async throws {
    try await OperationClient.withCurrent(client) {
      let plain = PlainModel()
      let value = StructModel()
      @SharedQuery(NumberQuery(number: 1)) var local
      try await plain.refresh()
      #expect(plain.numbers == [1, 1])
      #expect(value.numbers == [1, 1])
      #expect(local == [1, 1])
      #expect(value.delayed == nil)
      #expect($local.store === plain.$numbers.store)
    }
  }

  @Test("A wrapper with a default has the members of the stored state")
  func membersWithDefault() async throws {
    let number = SharedQuery(Query(path: ["number"]) { _ in 1 }, default: -1, client: client)
    #expect(number.wrappedValue == -1 && !number.isLoading && number.status.isIdle)
    try await number.fetch()
    #expect(number.wrappedValue == 1 && number.status.isSuccess && number.error == nil)
    #expect(number.valueUpdateCount == 1 && number.valueLastUpdatedAt != nil && !number.isPaused)
    #expect(number.initialValue == -1 && number.activeTasks.isEmpty)
    let call = Mutation<Int, Int>(path: ["call"]) { number, _ in number }
    let called = SharedQuery(call, default: 0, client: client)
    try await called.mutate(with: 2)
    #expect(called.currentValue == 2 && called.history.map(\.arguments) == [2])
  }

  @Test("A wrapper of a request has the client's store of that request")
  func request() {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    #expect(wrapper.store === client.store(for: NumberQuery(number: 1)))
    #expect(wrapper.isBacked)
  }

  @Test("A wrapped value is the initial value of a new store, and does not change an existing one")
  func wrappedValue() {
    let first = SharedQuery(wrappedValue: [9], NumberQuery(number: 1), client: client)
    #expect(first.wrappedValue == [9])
    #expect(first.projectedValue.valueUpdateCount == 0)
    let second = SharedQuery(wrappedValue: [8], NumberQuery(number: 1), client: client)
    #expect(second.wrappedValue == [9])
  }

  @Test("An initial state is the first state of a new store")
  func initialState() {
    let state = QueryState<[Int], any Error>(initialValue: [5])
    let wrapper = SharedQuery(NumberQuery(number: 1), initialState: state, client: client)
    #expect(wrapper.wrappedValue == [5])
    #expect(wrapper.projectedValue.initialValue == [5])
  }

  @Test("A wrapper of a store has that store, with or without a client")
  func store() {
    let detached = OperationStore.detached(query: NumberQuery(number: 1), initialValue: [4])
    let wrapper = SharedQuery(detached)
    #expect(wrapper.store === detached)
    #expect(wrapper.wrappedValue == [4])
    let own = SharedQuery(client.store(for: NumberQuery(number: 1)))
    own.projectedValue.bind(to: NumberQuery(number: 2))
    #expect(own.store === client.store(for: NumberQuery(number: 2)))
  }

  @Test("A wrapper without a client uses the current one of its creation")
  func current() {
    let other = OperationClient.quiet()
    let (wrapper, empty) = OperationClient.withCurrent(client) {
      (SharedQuery(NumberQuery(number: 1)), SharedQuery<NumberQuery.State>())
    }
    OperationClient.withCurrent(other) { empty.projectedValue.bind(to: NumberQuery(number: 1)) }
    #expect(wrapper.store === client.store(for: NumberQuery(number: 1)))
    #expect(empty.store === wrapper.store)
    #expect(SharedQuery(NumberQuery(number: 1), client: other).store !== wrapper.store)
  }

  @Test("A wrapper accepts a modified request")
  func modified() async throws {
    let wrapper = SharedQuery(NumberQuery(number: 1).retry(limit: 2), client: client)
    try await wrapper.projectedValue.fetch()
    #expect(wrapper.wrappedValue == [1, 1])
  }

  @Test("The error of a wrapper has the type of its request")
  func typedError() async {
    let wrapper = SharedQuery(Query.refused("no"), client: client)
    await #expect(throws: Refusal(reason: "no")) { try await wrapper.projectedValue.fetch() }
    let error: Refusal? = wrapper.projectedValue.error
    #expect(error?.reason == "no")
    let status: OperationStatus<Int, Refusal> = wrapper.projectedValue.status
    guard case .result(.failure(let refusal)) = status else {
      Issue.record("The status is \(status)")
      return
    }
    let reason: String = refusal.reason
    #expect(reason == "no")
  }
}
