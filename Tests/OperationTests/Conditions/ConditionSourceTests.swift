import Operation
import Synchronization
import Testing

/// A sequence that counts its iterations, and whose elements a test sends.
private struct Sequence: AsyncSequence, Sendable {
  struct Iterator: AsyncIteratorProtocol {
    var values: EventStream<Result<Bool, Failed>>.Iterator

    mutating func next() async throws -> Bool? { try await values.next()?.get() }
  }

  let broadcast = Broadcast<Result<Bool, Failed>>()
  let iterations = Counter()

  func makeAsyncIterator() -> Iterator {
    iterations.increment()
    return Iterator(values: broadcast.values.makeAsyncIterator())
  }

  func send(_ value: Bool) { broadcast.send(.success(value)) }
}

/// A condition that is satisfied when something subscribes to it, and reports no change.
private struct LateCondition: OperationRunSpecification {
  private let isOver = Monitor(false)

  func isSatisfied(in context: OperationContext) -> Bool { isOver.value }

  func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    isOver.update { $0 = true }
    return .empty
  }
}

@Suite("Conditions over the foreground, sequences and broadcasts") struct ConditionSourceTests {
  private let context = OperationContext()
  private let sequence = Sequence()

  @Test("The foreground is a condition, over the observer of the context") func foreground() {
    let (observer, changes) = (ManualApplicationActivityObserver(activity: .background), Counter())
    var context = OperationContext()
    context.applicationActivityObserver = observer
    let condition: some OperationRunSpecification = .foreground
    #expect(!condition.isSatisfied(in: context))
    let subscription = condition.subscribe(in: context) { changes.increment() }
    for activity in [ApplicationActivity.foreground, .foreground, .background, .foreground] {
      observer.set(activity)
    }
    #expect(changes.value == 3 && condition.isSatisfied(in: context))
    subscription.cancel()
    #expect(observer.subscriberCount == 0)
  }

  @Test("A stale query that is observed runs when the program enters the foreground")
  func rerun() async {
    let observer = ManualApplicationActivityObserver(activity: .background)
    let client = OperationClient(
      defaults: OperationDefaults(
        retryLimit: 0, runsAutomatically: false, applicationActivityObserver: observer))
    let store = client.store(for: Query(path: ["a"]) { _ in 1 }.rerunOnChange(of: .foreground))
    let (log, subscription) = store.record()
    observer.set(.foreground)
    await log.wait { $0.contains { $0.name == "ended 1" } }
    #expect(store.currentValue == 1)
    subscription.cancel()
    #expect(observer.subscriberCount == 0)
  }

  @Test("The stores of a client have the observers of its defaults, or else those of the system")
  func defaults() {
    let (observer, source) = (ManualApplicationActivityObserver(), ManualMemoryPressureSource())
    let client = OperationClient(
      defaults: OperationDefaults(
        applicationActivityObserver: observer, memoryPressureSource: source))
    let own = client.store(for: Mutation(path: ["a"]) { (_: Int, _) in 1 }).context
    #expect(own.applicationActivityObserver as AnyObject === observer)
    #expect(own.memoryPressureSource as AnyObject === source)
    let plain = OperationClient().store(for: Query(path: ["a"]) { _ in 1 }).context
    #expect(plain.applicationActivityObserver is TerminalActivityObserver)
    #expect(plain.memoryPressureSource as AnyObject === PressureStallSource.shared)
  }

  @Test("One task iterates over a sequence for all subscribers, and ends with the last")
  func followed() async {
    let condition: some OperationRunSpecification = .following(sequence)
    #expect(!condition.isSatisfied(in: context) && sequence.iterations.value == 0)
    let log = Recorder<Bool>()
    let subscriptions = (0..<3).map { _ in
      condition.subscribe(in: context) { log.append(true) }
    }
    #expect(await eventually { sequence.broadcast.subscriberCount == 1 })
    for value in [true, true, false, true] { sequence.send(value) }
    await log.wait(forCount: 9)
    #expect(condition.isSatisfied(in: context) && sequence.iterations.value == 1)
    for subscription in subscriptions { subscription.cancel() }
    #expect(await eventually { sequence.broadcast.subscriberCount == 0 })
    #expect(condition.isSatisfied(in: context), "the last element still counts")
    let again = condition.subscribe(in: context) { log.append(false) }
    #expect(await eventually { sequence.broadcast.subscriberCount == 1 })
    sequence.send(false)
    await log.wait(forCount: 10)
    #expect(sequence.iterations.value == 2 && !condition.isSatisfied(in: context))
    again.cancel()
  }

  @Test("A sequence that fails does not change the condition") func failure() async {
    let condition: some OperationRunSpecification = .following(sequence, initially: true)
    #expect(condition.isSatisfied(in: context))
    let log = Recorder<Bool>()
    let subscription = condition.subscribe(in: context) { log.append(true) }
    #expect(await eventually { sequence.broadcast.subscriberCount == 1 })
    sequence.send(false)
    await log.wait(forCount: 1)
    sequence.broadcast.send(.failure(Failed()))
    #expect(await eventually { sequence.broadcast.subscriberCount == 0 })
    #expect(!condition.isSatisfied(in: context) && log.count == 1)
    subscription.cancel()
  }

  @Test("The task of a sequence has no task-local value of its first subscriber")
  func followerContext() async {
    enum Caller { @TaskLocal static var name: String? }
    let names = Recorder<String?>()
    let condition: some OperationRunSpecification = .following(
      AsyncStream<Bool> {
        names.append(Caller.name)
        return nil
      })
    let subscription = Caller.$name.withValue("first") { condition.subscribe(in: context) {} }
    await names.wait(forCount: 1)
    #expect(names.all == [nil])
    subscription.cancel()
  }

  @Test("A subscription retains nothing, and ends even if its condition was released before")
  func followerLifetime() async {
    let live = LiveCount()
    do {
      let probe = live.makeProbe()
      let subscription = SequenceRunSpecification.following(sequence)
        .subscribe(in: context) { withExtendedLifetime(probe) {} }
      #expect(await eventually { sequence.broadcast.subscriberCount == 1 })
      subscription.cancel()
    }
    #expect(await eventually { sequence.broadcast.subscriberCount == 0 })
    #expect(live.value == 0)
  }

  @Test("The last element of a broadcast is a condition, with or without subscribers")
  func latest() {
    let (broadcast, changes) = (Broadcast<Bool>(), Counter())
    do {
      let condition: some OperationRunSpecification = .latest(of: broadcast, initially: true)
      #expect(condition.isSatisfied(in: context))
      broadcast.send(false)
      #expect(!condition.isSatisfied(in: context))
      let subscription = condition.subscribe(in: context) { changes.increment() }
      for value in [true, true, false] { broadcast.send(value) }
      #expect(changes.value == 2 && !condition.isSatisfied(in: context))
      subscription.cancel()
      broadcast.send(true)
      #expect(changes.value == 2 && condition.isSatisfied(in: context))
      #expect(broadcast.subscriberCount == 1)
    }
    #expect(broadcast.subscriberCount == 0)
  }

  @Test("A subscription still receives the broadcast when its condition was released")
  func latestOutlived() {
    let (broadcast, changes) = (Broadcast<Bool>(), Counter())
    let subscription = BroadcastRunSpecification.latest(of: broadcast)
      .subscribe(in: context) { changes.increment() }
    broadcast.send(true)
    #expect(changes.value == 1)
    subscription.cancel()
    #expect(broadcast.subscriberCount == 0)
  }

  @Test("A condition that is satisfied between a look at it and the subscription ends the wait")
  func satisfiedMeanwhile() async {
    let script = Script(failures: 1)
    let request = OpenQuery(script: script).retry(limit: 1).backoff(.noBackoff)
      .retries(onlyWhile: LateCondition())
    let run = Task { try await request.run() }
    #expect(await eventually { script.attempts == 2 })
    run.cancel()
    _ = await run.result
  }
}
