import Glibc
import Observation
import SharingOperation
import Synchronization
import Testing

@Suite struct Writing {
  let client = OperationClient.quiet()

  @Test("A write of several steps is one notification and one state")
  func oneNotification() {
    let wrapper = SharedQuery(wrappedValue: [], NumberQuery(number: 1), client: client)
    let states = Log<[Int]?>()
    let subscription = wrapper.store?.subscribe { states.append($0.state?.currentValue ?? nil) }
    let value = track { _ = wrapper.wrappedValue }
    wrapper.projectedValue.withLock { numbers in
      for number in 1...3 { numbers?.append(number) }
    }
    #expect(states.elements == [[], [1, 2, 3]])
    #expect(value.count == 1)
    withExtendedLifetime(subscription) {}
  }

  @Test("Writes from several threads lose no update")
  func threads() async {
    let wrapper = SharedQuery(NumberQuery(number: 1), default: [], client: client)
    await onThreads(8) { thread in
      for number in 0..<50 {
        wrapper.projectedValue.withLock { numbers in
          sched_yield()
          numbers.append(thread * 50 + number)
        }
      }
    }
    #expect(wrapper.wrappedValue.sorted() == Array(0..<400))
  }

  @Test("An edit that does not change a displayed default leaves the store without a value")
  func emptyEditOfDefault() async {
    let plain = SharedQuery(NumberQuery(number: 1), client: client)
    let defaulted = SharedQuery(NumberQuery(number: 1), default: [0], client: client)
    await defaulted.optimistically { numbers in
      if let index = numbers.firstIndex(of: 7) { numbers.remove(at: index) }
    } while: {
      #expect(plain.wrappedValue == nil && defaulted.wrappedValue == [0])
    }
    #expect(plain.wrappedValue == nil)
    await defaulted.optimistically { numbers in
      numbers.append(1)
    } while: {
      #expect(plain.wrappedValue == [0, 1])
    }
    #expect(plain.wrappedValue == [0, 1])
  }

  @Test("A withLock that only reads an unbacked wrapper is not reported") func readUnbacked() {
    let issues = Log<OperationIssue>()
    OperationIssue.withHandler({ issues.append($0) }) {
      let wrapper = SharedQuery<QueryState<[Int], any Error>>()
      #expect(wrapper.projectedValue.withLock { $0 } == nil)
      #expect(issues.elements.isEmpty)
      wrapper.projectedValue.withLock { $0 = [1] }
      #expect(issues.elements.count == 1)
    }
  }

  /// A value that equals every value with the same number.
  private struct Named: Sendable, Equatable {
    let number: Int
    var name: String

    static func == (lhs: Named, rhs: Named) -> Bool { lhs.number == rhs.number }
  }

  @Test("A write of a value that equals the old one by == is dropped, by withLock only")
  func equalWrite() {
    let named = Query<Named, any Error>(path: ["named"]) { _ in Named(number: 1, name: "a") }
    let wrapper = SharedQuery(named.neverStale(), client: client)
    wrapper.projectedValue.withLock { $0 = Named(number: 1, name: "a") }
    wrapper.projectedValue.withLock { $0?.name = "b" }
    #expect(wrapper.wrappedValue?.name == "a")
    #expect(wrapper.projectedValue.valueUpdateCount == 1)
    wrapper.projectedValue.withLock { $0 = Named(number: 2, name: "b") }
    #expect(wrapper.wrappedValue?.name == "b")
    wrapper.projectedValue.setResult(to: .success(Named(number: 2, name: "c")))
    #expect(wrapper.wrappedValue?.name == "c")
    #expect(wrapper.projectedValue.valueUpdateCount == 3)
  }

  @Test("A withLock that only reads changes no count and clears no error")
  func readOnly() {
    let wrapper = SharedQuery(NumberQuery(number: 1).neverStale(), client: client)
    wrapper.projectedValue.withLock { $0 = [2] }
    wrapper.projectedValue.setResult(to: .failure(Refusal(reason: "late")))
    #expect(wrapper.projectedValue.withLock { $0?.count } == 1)
    wrapper.projectedValue.withLock { $0 = [2] }
    #expect(wrapper.projectedValue.error is Refusal)
    #expect(wrapper.projectedValue.valueUpdateCount == 1)
    wrapper.projectedValue.withLock { $0?[0] = 3 }
    #expect(wrapper.wrappedValue == [3])
    #expect(wrapper.projectedValue.error == nil)
  }

  private struct Incomparable: Sendable {
    var numbers: [Int]
  }

  @Test("A withLock always writes a value that is not Equatable")
  func readIncomparable() {
    let query = Query<Incomparable, any Error>(path: ["list"]) { _ in Incomparable(numbers: [1]) }
    let wrapper = SharedQuery(query.neverStale(), client: client)
    wrapper.projectedValue.withLock { $0 = Incomparable(numbers: [2]) }
    wrapper.projectedValue.setResult(to: .failure(Refusal(reason: "late")))
    #expect(wrapper.projectedValue.valueUpdateCount == 1)
    #expect(wrapper.projectedValue.withLock { $0?.numbers.count } == 1)
    #expect(wrapper.projectedValue.error == nil)
    #expect(wrapper.projectedValue.valueUpdateCount == 2)
    wrapper.projectedValue.withLock { $0?.numbers[0] = 3 }
    #expect(wrapper.wrappedValue?.numbers == [3])
  }

  @Test("A wrapper that is bound during exclusive access notifies its readers at the end")
  func boundInside() throws {
    let wrapper = SharedQuery<QueryState<[Int], any Error>>(NumberQuery(number: 1), client: client)
    let other = client.store(for: NumberQuery(number: 2).neverStale())
    let reads = track { _ = wrapper.wrappedValue }
    let late = Log<Int>()
    other.withExclusiveAccess {
      other.currentValue = [7]
      wrapper.projectedValue.bind(to: NumberQuery(number: 2).neverStale())
      withObservationTracking {
        _ = wrapper.wrappedValue
      } onChange: {
        late.append(1)
      }
    }
    #expect(reads.count <= 1)
    #expect(late.elements == [1])
    #expect(wrapper.wrappedValue == [7])
  }

  @Test("The writes of a throwing body are kept, and its error is rethrown")
  func throwing() {
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    #expect(throws: Refusal(reason: "late")) {
      try wrapper.projectedValue.withLock { numbers in
        numbers = [1]
        throw Refusal(reason: "late")
      }
    }
    #expect(wrapper.wrappedValue == [1])
    #expect(wrapper.projectedValue.withLock { $0?.count } == 1)
  }

  @Test("A wrapper with a default shares the store, and writes to it")
  func projection() {
    let plain = SharedQuery(NumberQuery(number: 1), client: client)
    let defaulted = SharedQuery(NumberQuery(number: 1), default: [0], client: client)
    #expect(plain.store === defaulted.store)
    #expect(defaulted.wrappedValue == [0])
    #expect(plain.wrappedValue == nil)
    #expect(defaulted.projectedValue.state.defaultValue == [0])
    defaulted.projectedValue.withLock { $0.append(1) }
    #expect(plain.wrappedValue == [0, 1])
    defaulted.projectedValue.setResult(to: .success([2]))
    #expect(plain.wrappedValue == [2])
    plain.projectedValue.setResult(to: .success(nil))
    #expect(defaulted.wrappedValue == [0])
    #expect(defaulted.projectedValue.currentValue == [0])
  }

  @Test("A wrapper with a default can be bound, and keeps its default")
  func boundDefault() {
    let defaulted = SharedQuery(NumberQuery(number: 1), default: [0], client: client)
    defaulted.projectedValue.bind(to: NumberQuery(number: 2))
    #expect(defaulted.wrappedValue == [0])
    #expect(defaulted.store === client.store(for: NumberQuery(number: 2)))
  }

  @Test("setResult stores a result, and resetState restores the initial value")
  func resultAndReset() async {
    let clock = ManualClock()
    let client = OperationClient.quiet(clock: clock)
    let wrapper = SharedQuery(wrappedValue: [1], NumberQuery(number: 1), client: client)
    wrapper.projectedValue.setResult(to: .failure(Refusal(reason: "no")))
    #expect(wrapper.projectedValue.error as? Refusal == Refusal(reason: "no"))
    #expect(wrapper.projectedValue.status.isFailure)
    #expect(wrapper.projectedValue.errorLastUpdatedAt == clock.now())
    wrapper.projectedValue.setResult(to: .success([2]))
    #expect(wrapper.wrappedValue == [2])
    wrapper.projectedValue.resetState()
    #expect(wrapper.wrappedValue == [1])
    #expect(wrapper.projectedValue.valueUpdateCount == 0)
  }

  @Test("A wrapper runs, fetches, schedules and cancels")
  func runs() async throws {
    let client = OperationClient.quiet()
    let wrapper = SharedQuery(NumberQuery(number: 1), client: client)
    let events = Log<String>()
    let value = try await wrapper.projectedValue.run { event in
      switch event {
      case .runStarted: events.append("started")
      case .runEnded: events.append("ended")
      default: break
      }
    }
    #expect(value == [1, 1])
    #expect(events.elements == ["started", "ended"])
    #expect(try await wrapper.projectedValue.fetch(using: OperationContext()) == [1, 1])
    let named = OperationTaskConfiguration(name: "numbers")
    #expect(try await wrapper.projectedValue.fetch(using: named) == [1, 1])
    let task = try wrapper.projectedValue.runTask()
    #expect(wrapper.projectedValue.isLoading)
    wrapper.projectedValue.cancel()
    #expect(task.isCancelled)
    #expect(!wrapper.projectedValue.isLoading)
  }
}

@Suite struct Unbacked {
  @Test("An unbacked wrapper displays the empty value, and is stale")
  func empty() {
    let wrapper = SharedQuery<NumberQuery.State>()
    #expect(wrapper.wrappedValue == nil)
    #expect(!wrapper.isBacked)
    #expect(wrapper.store == nil)
    #expect(wrapper.projectedValue.isStale)
    #expect(wrapper.projectedValue.status.isIdle)
    #expect(!wrapper.projectedValue.isLoading)
    #expect(wrapper.projectedValue.error == nil)
  }

  @Test("Every run of an unbacked wrapper throws unbacked")
  func runs() async {
    let wrapper = SharedQuery<NumberQuery.State>().projectedValue
    await #expect(throws: SharedQueryError.unbacked) { try await wrapper.run() }
    await #expect(throws: SharedQueryError.unbacked) { try await wrapper.fetch() }
    await #expect(throws: SharedQueryError.unbacked) {
      try await wrapper.fetch(using: OperationTaskConfiguration())
    }
    #expect(throws: SharedQueryError.unbacked) { try wrapper.runTask() }
    wrapper.invalidate()
    wrapper.cancel()
    wrapper.resetState()
  }

  @Test("A run throws unbacked, also if the request has a failure type of its own")
  func typedFailure() async {
    let wrapper = SharedQuery<QueryState<Int, Refusal>>().projectedValue
    let run: () async throws(any Error) -> Int = { try await wrapper.fetch() }
    await #expect(throws: SharedQueryError.unbacked) { try await run() }
  }

  @Test("A write to an unbacked wrapper has the empty value, and is reported and dropped")
  func writes() {
    let wrapper = SharedQuery<NumberQuery.State>()
    let issues = Log<OperationIssue>()
    OperationIssue.withHandler {
      issues.append($0)
    } operation: {
      let before = wrapper.projectedValue.withLock { numbers in
        defer { numbers = [1] }
        return numbers
      }
      #expect(before == nil)
      wrapper.projectedValue.setResult(to: .success([1]))
    }
    #expect(issues.elements.map(\.kind) == [.unbackedWrite, .unbackedWrite])
    #expect(issues.elements.allSatisfy { $0.message.contains("QueryState") })
    #expect(wrapper.wrappedValue == nil)
  }

  @Test("A wrapper that is bound later fetches and displays its value")
  func bound() async throws {
    let client = OperationClient.quiet()
    let wrapper = OperationClient.withCurrent(client) { SharedQuery<NumberQuery.State>() }
    wrapper.projectedValue.bind(to: NumberQuery(number: 1))
    #expect(try await wrapper.projectedValue.fetch() == [1, 1])
    #expect(wrapper.wrappedValue == [1, 1])
  }

  @Test("An edit of a wrapper without a store does only its work")
  func editWithoutStore() async {
    let wrapper = SharedQuery<QueryState<Int, any Error>>()
    let calls = Counter()
    #expect(await wrapper.projectedValue.optimistically({ $0 = 5 }) { calls.increment() } == 1)
    #expect(wrapper.wrappedValue == nil)
  }
}
