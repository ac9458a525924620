import Foundation
import SharingOperation
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct WrapperStreams {
  let client = OperationClient.quiet()

  func store(_ number: Int) -> OperationStore<NumberQuery.State> {
    client.store(for: NumberQuery(number: number))
  }

  @Test("Values start with the current value, and continue after a binding without repeats")
  func values() async {
    store(2).currentValue = [1]
    store(3).currentValue = [3]
    let wrapper = OperationClient.withCurrent(client) { SharedQuery<NumberQuery.State>() }
    var values = wrapper.projectedValue.values.makeAsyncIterator()
    #expect(await values.next() == .some(nil))
    wrapper.projectedValue.bind(to: NumberQuery(number: 1))
    store(1).currentValue = [1]
    #expect(await values.next() == .some([1]))
    wrapper.projectedValue.bind(to: NumberQuery(number: 2))
    wrapper.projectedValue.bind(to: NumberQuery(number: 3))
    #expect(await values.next() == .some([3]))
    store(1).currentValue = [9]
    store(3).currentValue = [4]
    #expect(await values.next() == .some([4]))
  }

  @Test("Values of a wrapper with a default start with the default")
  func defaultedValues() async {
    let wrapper = SharedQuery(NumberQuery(number: 1), default: [], client: client)
    var values = wrapper.projectedValue.values.makeAsyncIterator()
    #expect(await values.next() == .some([]))
    store(1).currentValue = [1]
    #expect(await values.next() == .some([1]))
  }

  @Test("A value that equals the one before is dropped, also if it is of another store")
  func noRepeats() {
    let wrapper = SharedQuery(NumberQuery(number: 1), default: [], client: client)
    let received = Log<[Int]>()
    let subscription = wrapper.projectedValue.values.source.subscribe { signal in
      if case .element(let value, _) = signal { received.append(value) }
    }
    store(1).currentValue = []
    store(1).currentValue = [1]
    store(1).currentValue = [1]
    store(2).currentValue = [1]
    wrapper.projectedValue.bind(to: NumberQuery(number: 2))
    store(2).currentValue = [2]
    #expect(received.elements == [[], [1], [2]])
    withExtendedLifetime(subscription) {}
  }

  @Test("States are those of the bound store")
  func states() async {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    var states = wrapper.projectedValue.states.makeAsyncIterator()
    #expect(await states.next()?.valueUpdateCount == 0)
    store(1).currentValue = [1]
    #expect(await states.next()?.valueUpdateCount == 1)
    store(2).currentValue = [2]
    store(2).currentValue = [3]
    wrapper.projectedValue.bind(to: NumberQuery(number: 2))
    #expect(await states.next()?.valueUpdateCount == 2)
  }

  @Test("Values of a dependent wrapper start with the value that it displays")
  func startAhead() async {
    let id = SharedQuery(WrittenNumber(path: ["id"]), client: client)
    id.withLock { $0 = 1 }
    for number in 1...2 { store(number).currentValue = [number] }
    let numbers = SharedQuery(dependingOn: id) { NumberQuery(number: $0) }
    let received = Log<[Int]?>()
    let subscriptions = Log<OperationSubscription>()
    id.store?.withExclusiveAccess {
      id.store?.currentValue = 2
      #expect(numbers.wrappedValue == [2])
      subscriptions.append(
        numbers.values.source.subscribe { signal in
          if case .element(let value, _) = signal { received.append(value) }
        })
      #expect(received.elements == [[2]])
      id.store?.currentValue = 1
    }
    #expect(numbers.wrappedValue == [1])
    #expect(received.elements == [[2], [1]])
    subscriptions.removeAll()
  }

  @Test("Statuses and changes of a member follow a binding")
  func statusesAndChanges() async {
    let wrapper = SharedQuery(Query.refused("a"), client: client)
    var statuses = wrapper.projectedValue.statuses.makeAsyncIterator()
    var errors = wrapper.projectedValue.changes(of: \.error).makeAsyncIterator()
    #expect(await statuses.next() == .idle)
    #expect(await errors.next() == .some(nil))
    wrapper.store?.setResult(to: .failure(Refusal(reason: "a")))
    #expect(await statuses.next() == .result(.failure(Refusal(reason: "a"))))
    #expect(await errors.next() == .some(Refusal(reason: "a")))
    client.store(for: Query.refused("b")).setResult(to: .failure(Refusal(reason: "b")))
    wrapper.projectedValue.bind(to: Query.refused("b"))
    #expect(await statuses.next() == .result(.failure(Refusal(reason: "b"))))
    #expect(await errors.next() == .some(Refusal(reason: "b")))
  }

  @Test("Changes of a member have no repeats")
  func quietChanges() async {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    var flags = wrapper.projectedValue.changes(of: \.isLoading).makeAsyncIterator()
    #expect(await flags.next() == false)
    store(1).currentValue = [1]
    store(1).currentValue = [2]
    let task = store(1).runTask()
    #expect(await flags.next() == true)
    withExtendedLifetime(task) {}
  }

  @Test(
    "The last element is the current value after concurrent bindings and writes",
    arguments: 0..<20)
  func lastWins(round: Int) async {
    let wrapper = SharedQuery(NumberQuery(number: 0), client: client)
    var values = wrapper.projectedValue.values.makeAsyncIterator()
    await onThreads(6) { number in
      wrapper.projectedValue.bind(to: NumberQuery(number: number))
      store(number).currentValue = [number]
    }
    wrapper.projectedValue.bind(to: NumberQuery(number: 100))
    wrapper.store?.currentValue = [round, 100]
    var last: [Int]?
    while last != [round, 100] { last = await values.next() ?? nil }
    #expect(wrapper.wrappedValue == last)
  }

  @Test("The subscription of an iterator ends with it, and moves with a binding")
  func subscriptions() async {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    do {
      var values = wrapper.projectedValue.values.makeAsyncIterator()
      _ = await values.next()
      #expect(store(1).subscriberCount == 2)
      wrapper.projectedValue.bind(to: NumberQuery(number: 2))
      #expect(store(1).subscriberCount == 0)
      #expect(store(2).subscriberCount == 2)
    }
    #expect(store(2).subscriberCount == 1)
  }

  @Test("A wrapper that follows a stream drops the elements that flatMapLatest has left")
  func leftStream() {
    let cells = (0..<3).map { client.store(for: Query(path: ["cell", $0]) { _ in 0 }) }
    let numbers = cells.map { $0.values.compactMap { $0 } }
    let sums = numbers[0].flatMapLatest { numbers[$0] }.combineLatest(numbers[2]).map(+)
    let wrapper = SharedQuery(dependingOn: sums, client: client) { NumberQuery(number: $0) }
    cells[0].currentValue = 0
    cells[2].currentValue = 5
    #expect(wrapper.store === store(5))
    cells[0].currentValue = 1
    cells[2].currentValue = 6
    #expect(wrapper.store === store(5))
    cells[1].currentValue = 3
    #expect(wrapper.store === store(9))
  }

  @Test(
    "At a shutdown the streams of a wrapper end with the last value of the store, if there is one")
  func shutdown() async {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    let unbacked = SharedQuery(NumberQuery(number: 1), client: client)
    unbacked.projectedValue.bind(to: nil)
    let (store, gate) = (store(1), DispatchGate())
    let (blocked, continuation) = AsyncStream.makeStream(of: Void.self)
    let subscription = store.subscribe { _ in
      guard store.currentValue == [1] else { return }
      continuation.finish()
      gate.wait()
    }
    var values = wrapper.projectedValue.values.makeAsyncIterator()
    var states = unbacked.projectedValue.states.makeAsyncIterator()
    #expect(await values.next() == .some(nil))
    #expect(await states.next() != nil)
    Thread.detachNewThread { store.currentValue = [1] }
    for await _ in blocked {}
    store.currentValue = [2]
    await client.shutdown(within: .zero)
    gate.open()
    var last: [Int]?
    while let value = await values.next() { last = value }
    #expect(last == [2])
    #expect(await states.next() == nil)
    subscription.cancel()
  }

  @Test("At a shutdown a stream ends behind the value of a store that was bound during a delivery")
  func shutdownAfterBinding() async {
    let (first, second) = (store(1), store(2))
    second.currentValue = [2]
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    let gate = DispatchGate()
    let (blocked, continuation) = AsyncStream.makeStream(of: Void.self)
    let (written, end) = AsyncStream.makeStream(of: Void.self)
    var values = wrapper.projectedValue.values.map { value in
      if value == [1] {
        continuation.finish()
        gate.wait()
      }
      return value
    }.makeAsyncIterator()
    #expect(await values.next() == .some(nil))
    Thread.detachNewThread {
      first.currentValue = [1]
      end.finish()
    }
    for await _ in blocked {}
    wrapper.projectedValue.bind(to: NumberQuery(number: 2))
    await client.shutdown(within: .zero)
    gate.open()
    for await _ in written {}
    var last: [Int]?
    while let value = await values.next() { last = value }
    #expect(last == [2])
  }

  @Test("A stream that begins in a delivery after a shutdown has the value, and ends")
  func afterShutdown() async {
    store(1).currentValue = [1]
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    await client.shutdown(within: .zero)
    // The second subscription is made while the wrapper delivers its binding to the first one.
    let projected = wrapper.projectedValue
    var values = projected.values.flatMapLatest { _ in projected.values }.makeAsyncIterator()
    #expect(await values.next() == .some([1]))
    #expect(await values.next() == nil)
    withExtendedLifetime(wrapper) {}
  }
}
