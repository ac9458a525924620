import Observation
import SharingOperation
import Testing

@Suite(.timeLimit(.minutes(5))) struct ReadTracking {
  let client = OperationClient.quiet()

  private let notified = Log<[Counter]>()

  @Test("A reader of the value is notified of a new value, once")
  func value() {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    let notified = track { _ = wrapper.wrappedValue }
    wrapper.store?.currentValue = [1]
    wrapper.store?.currentValue = [2]
    #expect(notified.count == 1)
  }

  @Test("Readers of the mark and of the confirmed value are notified when an edit begins and ends")
  func edit() async {
    let wrapper = SharedQuery(NumberQuery(number: 1), default: [], client: client)
    let projected = wrapper.projectedValue
    wrapper.store?.currentValue = [1]
    func reads() -> [Counter] {
      [track { _ = projected.isOptimistic }, track { _ = projected.confirmedValue }]
    }
    #expect(!projected.isOptimistic && projected.confirmedValue == [1])
    let begun = reads()
    var ended: [Counter] = []
    await wrapper.store?.optimistically {
      $0 = [2]
    } while: {
      #expect(projected.isOptimistic && projected.confirmedValue == [1])
      #expect(begun.map(\.count) == [1, 1])
      ended = reads()
    }
    #expect(!projected.isOptimistic && projected.confirmedValue == [2])
    #expect(ended.map(\.count) == [1, 1])
  }

  @Test("A wrapper without a store has no edit, and its confirmed value is the displayed one")
  func noEdit() {
    let projected = SharedQuery<NumberQuery.State>(client: client).projectedValue
    let reads = [track { _ = projected.isOptimistic }, track { _ = projected.confirmedValue }]
    #expect(!projected.isOptimistic && projected.confirmedValue == nil)
    projected.bind(to: NumberQuery(number: 1))
    #expect(reads.map(\.count) == [1, 1])
  }

  @Test("A reader of the error is not notified of another store, if neither has an error")
  func errorOfOther() {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    let error = track { _ = wrapper.projectedValue.error }
    wrapper.bind(to: NumberQuery(number: 2))
    #expect(error.count == 0)
  }

  @Test("A reader of the value is not notified of a loading flag")
  func loading() {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    let value = track { _ = wrapper.wrappedValue }
    let flag = track { _ = wrapper.projectedValue.isLoading }
    let task = wrapper.store?.runTask()
    #expect(flag.count == 1)
    #expect(wrapper.projectedValue.isLoading)
    #expect(value.count == 0)
    withExtendedLifetime(task) {}
  }

  @Test("A reader of a value that is not Equatable is not notified of a loading flag")
  func opaqueLoading() {
    let wrapper = SharedQuery(Query.opaque(1), client: client)
    _ = wrapper.projectedValue.currentValue
    let value = track { _ = wrapper.wrappedValue }
    let member = track { _ = wrapper.projectedValue.currentValue }
    let task = wrapper.store?.runTask()
    #expect(value.count == 0)
    #expect(member.count == 0)
    wrapper.store?.currentValue = Opaque(number: 1)
    #expect(value.count == 1)
    #expect(member.count == 1)
    withExtendedLifetime(task) {}
  }

  @Test("A reader of the value is not notified of an equal value; a reader of its date is")
  func equalValue() async {
    let clock = ManualClock()
    let wrapper = SharedQuery(NumberQuery(number: 1), client: .quiet(clock: clock))
    wrapper.store?.currentValue = [1]
    let value = track { _ = wrapper.wrappedValue }
    let date = track { _ = wrapper.projectedValue.valueLastUpdatedAt }
    let count = track { _ = wrapper.projectedValue.valueUpdateCount }
    await clock.advance(by: .seconds(1))
    wrapper.store?.currentValue = [1]
    #expect(value.count == 0)
    #expect(date.count == 1)
    #expect(count.count == 1)
  }

  @Test("With a default, a reader is not notified of a value that equals the default")
  func equalDefault() {
    let wrapper = SharedQuery(NumberQuery(number: 1), default: [], client: client)
    let value = track { _ = wrapper.wrappedValue }
    wrapper.store?.currentValue = []
    #expect(value.count == 0)
    wrapper.store?.currentValue = [1]
    #expect(value.count == 1)
  }

  @Test("A failure notifies the readers of the error, its count, the status and the state only")
  func members() {
    let wrapper = SharedQuery(Query.refused("no"), client: client)
    let reads: [String: Counter] = [
      "value": track { _ = wrapper.wrappedValue },
      "isLoading": track { _ = wrapper.projectedValue.isLoading },
      "status": track { _ = wrapper.projectedValue.status },
      "error": track { _ = wrapper.projectedValue.error },
      "state": track { _ = wrapper.projectedValue.state },
      "errorUpdateCount": track { _ = wrapper.projectedValue.errorUpdateCount },
      "valueUpdateCount": track { _ = wrapper.projectedValue.valueUpdateCount },
    ]
    wrapper.store?.setResult(to: .failure(Refusal(reason: "no")))
    let notified = reads.filter { $0.value.count == 1 }.keys.sorted()
    #expect(notified == ["error", "errorUpdateCount", "state", "status"])
    #expect(wrapper.projectedValue.error == Refusal(reason: "no"))
  }

  @Test("A reader of the error is notified when it is cleared, and not of a value without an error")
  func errorGoes() {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    let without = track { _ = wrapper.projectedValue.error }
    wrapper.store?.currentValue = [1]
    #expect(without.count == 0)
    wrapper.store?.setResult(to: .failure(Refusal(reason: "no")))
    let with = track { _ = wrapper.projectedValue.error }
    wrapper.store?.currentValue = [1]
    #expect(with.count == 1)
    #expect(wrapper.projectedValue.error == nil)
  }

  @Test(
    "A reader of the error is notified of an error that was set after a reset, also at once",
    arguments: [0, 1])
  func errorBehindReset(seconds: Int) async {
    let clock = ManualClock()
    let wrapper = SharedQuery(NumberQuery(number: 1), client: .quiet(clock: clock))
    wrapper.store?.setResult(to: .failure(Refusal(reason: "no")))
    let notified = track { _ = wrapper.projectedValue.error }
    await clock.advance(by: .seconds(seconds))
    wrapper.store?.withExclusiveAccess { store in
      store.resetState()
      store.setResult(to: .failure(Refusal(reason: "never")))
    }
    #expect(notified.count == 1)
  }

  @Test("A reader of isStale is notified of a value, and of another store")
  func staleness() {
    let wrapper = SharedQuery(NumberQuery(number: 1).neverStale(), client: client)
    let first = track { #expect(wrapper.projectedValue.isStale) }
    wrapper.store?.currentValue = [1]
    #expect(first.count == 1)
    let second = track { #expect(!wrapper.projectedValue.isStale) }
    wrapper.projectedValue.bind(to: NumberQuery(number: 2))
    #expect(second.count == 1)
  }

  @Test("A reader inside exclusive access is notified of what is undone there")
  func undoneInside() {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    wrapper.store?.withExclusiveAccess { store in
      let task = store.runTask()
      store.currentValue = [1]
      let reads = [track { #expect(wrapper.wrappedValue == [1]) }, track { _ = wrapper.isLoading }]
      store.cancel()
      store.resetState()
      notified.append(reads)
      withExtendedLifetime(task) {}
    }
    #expect(wrapper.wrappedValue == nil && !wrapper.isLoading)
    #expect(notified.elements.first?.map(\.count) == [1, 1])
  }

  @Test("A reader of a member inside exclusive access is notified of what is undone there")
  func undoneMember() {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    wrapper.store?.withExclusiveAccess { store in
      store.currentValue = [1]
      notified.append([track { #expect(wrapper.valueUpdateCount == 1) }])
      store.resetState()
    }
    #expect(wrapper.valueUpdateCount == 0)
    #expect(notified.elements.first?.map(\.count) == [1])
  }

  @Test("After a read inside exclusive access, readers are still notified of what has changed only")
  func readInside() {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    wrapper.store?.currentValue = [1]
    wrapper.store?.withExclusiveAccess { #expect(wrapper.wrappedValue == [1]) }
    let equal = track { _ = wrapper.wrappedValue }
    wrapper.store?.currentValue = [1]
    #expect(equal.count == 0)
    wrapper.store?.withExclusiveAccess { #expect(!wrapper.isLoading) }
    let (value, flag) = (track { _ = wrapper.wrappedValue }, track { _ = wrapper.isLoading })
    let task = wrapper.store?.runTask()
    #expect(value.count == 0 && flag.count == 1)
    withExtendedLifetime(task) {}
  }

  @Test("A reader of a value that is not equatable is notified of a reset and a write at once")
  func resetAtOneMoment() {
    let wrapper = SharedQuery(Query.opaque(1), client: client)
    wrapper.store?.currentValue = Opaque(number: 1)
    let changes = track { #expect(wrapper.wrappedValue?.number == 1) }
    wrapper.store?.withExclusiveAccess { store in
      store.resetState()
      store.currentValue = Opaque(number: 2)
    }
    #expect(changes.count == 1)
  }

  @Test("A reader of a store that is bound inside exclusive access is notified at its end")
  func boundInside() {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    let second = client.store(for: NumberQuery(number: 2))
    second.withExclusiveAccess {
      second.currentValue = [2]
      wrapper.bind(to: NumberQuery(number: 2))
      notified.append([track { #expect(wrapper.wrappedValue == [2]) }])
      second.currentValue = nil
    }
    #expect(wrapper.wrappedValue == nil)
    #expect(notified.elements.first?.map(\.count) == [1])
  }

  @Test("An observer reads the new value inside onChange")
  func commitFirst() {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    let seen = Log<[Int]?>()
    withObservationTracking {
      _ = wrapper.wrappedValue
    } onChange: {
      seen.append(wrapper.wrappedValue)
    }
    wrapper.store?.currentValue = [4]
    #expect(seen.elements == [[4]])
  }

  @Test("An observer may write, bind and track again inside onChange")
  func reentrant() {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    let outer = Counter()
    let inner = Counter()
    withObservationTracking {
      _ = wrapper.wrappedValue
    } onChange: {
      guard outer.increment() == 1 else { return }
      withObservationTracking {
        _ = wrapper.wrappedValue
      } onChange: {
        inner.increment()
      }
      wrapper.projectedValue.withLock { $0 = [7] }
      wrapper.projectedValue.bind(to: NumberQuery(number: 2))
    }
    wrapper.store?.currentValue = [4]
    #expect(inner.count == 1)
    #expect(wrapper.wrappedValue == nil)
    #expect(client.store(for: NumberQuery(number: 1)).currentValue == [7])
  }

  @Test("A reader that tracks again is notified of every concurrent commit")
  func threads() async {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    let notified = Counter()
    let last = 9
    @Sendable func follow() {
      withObservationTracking {
        _ = wrapper.projectedValue.valueUpdateCount
      } onChange: {
        // A reader that never stops tracking retains the wrapper for ever.
        if notified.increment() < last { follow() }
      }
    }
    follow()
    await onThreads(8) { index in wrapper.store?.currentValue = [index] }
    #expect(notified.count == 8)
    #expect(wrapper.projectedValue.valueUpdateCount == 8)
    wrapper.store?.currentValue = nil
    #expect(notified.count == last)
  }

  @Test("Observations returns the displayed values, one after the other") @MainActor
  func observations() async {
    let model = OperationClient.withCurrent(client) { ObservedModel() }
    var values = Observations { model.numbers }.makeAsyncIterator()
    #expect(await values.next() == .some([]))
    for number in 1...3 {
      model.$numbers.withLock { $0 = [number] }
      #expect(await values.next() == .some([number]))
    }
  }

  @Test("A wrapper and its model are observed independently") @MainActor
  func besideTheModel() {
    let model = OperationClient.withCurrent(client) { ObservedModel() }
    let both = track { _ = (model.title, model.numbers) }
    let title = track { _ = model.title }
    model.$numbers.withLock { $0 = [1] }
    #expect(both.count == 1)
    #expect(title.count == 0)
    model.title = "new"
    #expect(title.count == 1)
  }
}

@MainActor
@Observable
final class ObservedModel {
  var title = ""
  @ObservationIgnored @SharedQuery(NumberQuery(number: 1), default: []) var numbers
}
