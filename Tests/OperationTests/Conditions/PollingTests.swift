import Testing

@testable import Operation

@Suite("Polling", .timeLimit(.minutes(5))) struct PollingTests {
  private let clock = ManualClock()
  private let activity = ManualApplicationActivityObserver()
  private let client: OperationClient

  init() {
    client = OperationClient(
      defaults: OperationDefaults(
        retryLimit: 0, runsAutomatically: false, applicationActivityObserver: activity),
      clock: clock)
  }

  /// Waits until the poll sleeps, and then advances the clock.
  private func pass(_ seconds: Int) async {
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(seconds))
  }

  @Test("A poll continues while its store is observed, and leaves no sleeper after that")
  func observed() async {
    let script = Script()
    let store = client.store(for: OpenQuery(script: script).rerun(every: .seconds(10)))
    await clock.advance(by: .seconds(100))
    #expect(clock.sleeperCount == 0 && script.attempts == 0)
    let causes = Recorder<OperationRun.Cause>()
    let subscriptions = (0..<2).map { _ in
      store.subscribe { if case .runStarted(let run) = $0 { causes.append(run.cause) } }
    }
    await pass(9)
    #expect(script.attempts == 0)
    for attempt in 1...3 {
      await pass(attempt == 1 ? 1 : 10)
      await script.contexts.wait(for: attempt)
      await store.settles { $0.currentValue == attempt && !$0.isLoading }
    }
    subscriptions[0].cancel()
    await clock.sleepers(atLeast: 1)
    #expect(clock.sleeperCount == 1)
    subscriptions[1].cancel()
    await store.settles { _ in clock.sleeperCount == 0 }
    await clock.advance(by: .seconds(100))
    await clock.settle()
    #expect(script.attempts == 3)
    #expect(causes.all == Array(repeating: .poll, count: 6))
  }

  @Test("The next interval starts at the end of the run, with any result") func fromTheEnd() async {
    let remote = Remote<Int>()
    let store = client.store(for: remote.query().rerun(every: .seconds(10)))
    let subscription = store.subscribe { _ in }
    await pass(10)
    await remote.wait(forCalls: 1)
    #expect(clock.sleeperCount == 0)
    await clock.advance(by: .seconds(15))
    remote.answer(1)
    await pass(9)
    await store.settles { !$0.isLoading }
    await pass(1)
    await remote.wait(forCalls: 2)
    remote.fail(Failed(), call: 1)
    await pass(10)
    await remote.wait(forCalls: 3)
    store.cancel()
    await pass(10)
    await remote.wait(forCalls: 4)
    subscription.cancel()
    await remote.waitForCancellation(of: 3)
    await store.settles { _ in clock.sleeperCount == 0 }
  }

  @Test("A poll joins a run in flight, and waits for its end") func joins()
    async throws
  {
    let remote = Remote<Int>()
    let store = client.store(for: remote.query().rerun(every: .seconds(10)))
    let subscription = store.subscribe { _ in }
    await clock.sleepers(atLeast: 1)
    let run = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    await pass(10)
    await store.settles { $0.leaseCount == 2 }
    await clock.advance(by: .seconds(100))
    #expect(clock.sleeperCount == 0 && remote.callCount == 1)
    remote.answer(1)
    #expect(try await run.value == 1)
    await pass(10)
    await remote.wait(forCalls: 2)
    subscription.cancel()
  }

  @Test("A poll waits for the end of the run that the first subscriber started") func subscriber()
    async
  {
    let remote = Remote<Int>()
    let query = remote.query().rerun(every: .seconds(10)).enableAutomaticRunning()
    let store = client.store(for: query)
    let subscription = store.subscribe { _ in }
    await remote.wait(forCalls: 1)
    await pass(10)
    for _ in 0..<100 { await Task.yield() }
    #expect(clock.sleeperCount == 0, "the next wait begins at the end of the run")
    remote.answer(1)
    await store.settles { !$0.isLoading }
    await pass(9)
    #expect(remote.callCount == 1)
    await pass(1)
    await remote.wait(forCalls: 2)
    subscription.cancel()
  }

  @Test("In the background a poll waits, and it runs at once in the foreground")
  func background() async {
    let script = Script()
    let store = client.store(for: OpenQuery(script: script).rerun(every: .seconds(10)))
    let subscription = store.subscribe { _ in }
    activity.set(.background)
    await pass(10)
    await store.settles { _ in activity.subscriberCount == 1 }
    await clock.advance(by: .seconds(100))
    #expect(script.attempts == 0 && !store.isLoading && clock.sleeperCount == 0)
    activity.set(.foreground)
    await script.contexts.wait(for: 1)
    await clock.sleepers(atLeast: 1)
    #expect(activity.subscriberCount == 0)
    activity.set(.background)
    await pass(10)
    await store.settles { _ in activity.subscriberCount == 1 }
    subscription.cancel()
    await store.settles { _ in activity.subscriberCount == 0 }
    activity.set(.foreground)
    #expect(script.attempts == 1 && clock.sleeperCount == 0)
  }

  @Test("A poll whose condition is satisfied in the background waits for the foreground as well")
  func conditionInBackground() async {
    let script = Script()
    let network = ManualNetworkObserver(.disconnected)
    let query = OpenQuery(script: script).rerun(every: .seconds(10), while: .connected)
    let store = client.store(for: query)
    store.context.networkObserver = network
    let subscription = store.subscribe { _ in }
    await pass(10)
    await store.settles { _ in network.subscriberCount == 2 }
    activity.set(.background)
    network.set(.connected)
    await store.settles { _ in activity.subscriberCount == 1 }
    for _ in 0..<1_000 { await Task.yield() }
    #expect(script.attempts == 0 && network.subscriberCount == 2, "the poll still waits")
    activity.set(.foreground)
    await script.contexts.wait(for: 1)
    subscription.cancel()
  }

  @Test("With inBackground a poll continues in the background") func inBackground() async {
    activity.set(.background)
    let script = Script()
    let query = OpenQuery(script: script)
    let stores = [
      client.store(for: query.rerun(every: .seconds(10), inBackground: true)),
      .detached(query: query.rerun(while: { _ in true }, every: .seconds(10), inBackground: true)),
    ]
    stores[1].context.operationClock = clock
    stores[1].context.applicationActivityObserver = activity
    let subscriptions = stores.map { $0.subscribe { _ in } }
    await clock.sleepers(atLeast: 2)
    await clock.advance(by: .seconds(10))
    await script.contexts.wait(for: 2)
    #expect(activity.subscriberCount == 0)
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test("A run that is due waits for the condition, and starts when it is satisfied")
  func condition() async {
    let network = ManualNetworkObserver(.disconnected)
    let script = Script()
    let store = client.store(
      for: OpenQuery(script: script).rerun(every: .seconds(10), while: .connected))
    store.context.networkObserver = network
    let subscription = store.subscribe { _ in }
    await pass(10)
    await store.settles { _ in network.subscriberCount == 2 }
    #expect(script.attempts == 0 && clock.sleeperCount == 0)
    network.set(.connected)
    await script.contexts.wait(for: 1)
    await pass(10)
    await script.contexts.wait(for: 2)
    network.set(.disconnected)
    await pass(10)
    await store.settles { _ in network.subscriberCount == 2 }
    subscription.cancel()
    await store.settles { _ in network.subscriberCount == 0 }
    #expect(script.attempts == 2)
  }

  @Test("The poll subscribes to a condition that changes only while it has subscribers")
  func following() async {
    let (values, feed) = AsyncStream.makeStream(of: Bool.self)
    let isLoggedIn: SequenceRunSpecification = .following(values, initially: true)
    let script = Script()
    let store = client.store(
      for: OpenQuery(script: script).rerun(every: .seconds(10), while: isLoggedIn))
    let subscription = store.subscribe { _ in }
    for attempt in 1...3 {
      feed.yield(false)
      #expect(await eventually { !isLoggedIn.isSatisfied(in: OperationContext()) })
      await pass(10)
      #expect(script.attempts == attempt - 1)
      feed.yield(true)
      await script.contexts.wait(for: attempt)
      await clock.sleepers(atLeast: 1)
    }
    let terminated = Counter()
    feed.onTermination = { _ in terminated.increment() }
    subscription.cancel()
    #expect(await eventually { terminated.value == 1 })
  }

  /// A condition that is satisfied at its second read, and otherwise while another condition is.
  private struct Flickering: OperationRunSpecification {
    let readings = Counter()
    let base: BroadcastRunSpecification

    func isSatisfied(in context: OperationContext) -> Bool {
      readings.increment()
      return readings.value == 2 || base.isSatisfied(in: context)
    }

    func subscribe(
      in context: OperationContext, onChange: @escaping @Sendable () -> Void
    ) -> OperationSubscription {
      base.subscribe(in: context, onChange: onChange)
    }
  }

  @Test("A condition that is satisfied only until the poll resumes starts no run")
  func flickering() async {
    let broadcast = Broadcast<Bool>()
    let condition = Flickering(base: .latest(of: broadcast))
    let script = Script()
    let store = client.store(
      for: OpenQuery(script: script).rerun(every: .seconds(10), while: condition))
    let subscription = store.subscribe { _ in }
    await pass(10)
    #expect(await eventually { condition.readings.value >= 5 || script.attempts > 0 })
    #expect(script.attempts == 0)
    broadcast.send(true)
    await script.contexts.wait(for: 1)
    subscription.cancel()
  }

  @Test("A poll before a modifier that changes the state is reported, and ends")
  func mismatch() async {
    let script = Script()
    let reported = EventLog<OperationIssue>()
    await OperationIssue.withHandler({ reported.append($0) }) {
      let query = TypedQuery(script: script).rerun(while: { _ in true }, every: .seconds(10))
      let store = client.store(for: query.timeout(after: .seconds(5)))
      let subscription = store.subscribe { _ in }
      await pass(10)
      await reported.wait(for: 1)
      await store.settles { _ in clock.sleeperCount == 0 }
      subscription.cancel()
    }
    #expect(script.attempts == 0)
    #expect(reported.values.map(\.kind) == [.stateMismatch])
  }

  @Test("rerun(while:) polls while the state is unfinished") func state() async {
    let script = Script()
    let store = client.store(
      for: OpenQuery(script: script).rerun(while: { ($0.currentValue ?? 0) < 3 }))
    let subscription = store.subscribe { _ in }
    for attempt in 1...3 {
      await pass(1)
      await script.contexts.wait(for: attempt)
      await store.settles { $0.currentValue == attempt && !$0.isLoading }
    }
    for _ in 0..<3 { await pass(1) }
    #expect(script.attempts == 3)
    store.currentValue = 0
    await pass(1)
    await script.contexts.wait(for: 4)
    subscription.cancel()
    await store.settles { _ in clock.sleeperCount == 0 }
  }

  @Test("A new observation starts a new poll, and the poll before it starts no run")
  func newObservation() async {
    activity.set(.background)
    for round in 0..<100 {
      let script = Script()
      let query = OpenQuery(script: script, path: ["round", round])
      let store = client.store(for: query.rerun(while: { _ in true }, every: .seconds(10)))
      let first = store.subscribe { _ in }
      await pass(10)
      await store.settles { _ in activity.subscriberCount == 1 }
      first.cancel()
      let second = store.subscribe { _ in }
      await store.settles { _ in activity.subscriberCount == 0 }
      await clock.sleepers(atLeast: 1)
      #expect(script.attempts == 0 && !store.isLoading)
      second.cancel()
      await store.settles { _ in clock.sleeperCount == 0 }
    }
  }

  @Test("A poll retains its store no longer than its subscribers do") func lifetime() async {
    weak var store: OperationStore<QueryState<Int, any Error>>?
    do {
      let query = OpenQuery(script: Script()).rerun(every: .seconds(10)).clock(clock)
      let held = OperationStore.detached(query: query)
      store = held
      let subscription = held.subscribe { _ in }
      await pass(10)
      await clock.sleepers(atLeast: 1)
      subscription.cancel()
    }
    #expect(await eventually { store == nil && clock.sleeperCount == 0 })
  }

  /// Expects the first run after a second, and not before.
  private func expectRun(of script: Script) async {
    await clock.advance(by: .seconds(0.5))
    await clock.settle()
    #expect(script.attempts == 0)
    await clock.advance(by: .seconds(0.5))
    await script.contexts.wait(for: 1)
  }

  @Test(
    "An interval that is not above zero is reported, and a second is used",
    arguments: [Duration.zero, .seconds(-1)])
  func badInterval(interval: Duration) async {
    let script = Script()
    let (reported, query) = await issues {
      OpenQuery(script: script).rerun(every: interval)
    }
    #expect(reported.map(\.kind) == [.invalidValue])
    #expect(reported.first?.message.contains("OpenQuery") == true)
    let store = client.store(for: query)
    let subscription = store.subscribe { _ in }
    await clock.sleepers(atLeast: 1)
    await expectRun(of: script)
    subscription.cancel()
  }

  @Test("An interval of the state that is not above zero is reported, and is one second")
  func badStateInterval() async {
    let script = Script()
    let store = client.store(for: OpenQuery(script: script).rerun(every: { _ in .zero }))
    let (issues, subscription) = await issues {
      let subscription = store.subscribe { _ in }
      await clock.sleepers(atLeast: 1)
      return subscription
    }
    #expect(issues.map(\.kind) == [.invalidValue])
    await expectRun(of: script)
    subscription.cancel()
  }

  @Test("A poll does not work for the run whose request has subscribed") func subscribingRequest()
    async throws
  {
    let (script, worksForRun) = (Script(), Recorder<Bool>())
    let polled = client.store(
      for: OpenQuery(script: script).rerun(every: { _ in
        worksForRun.append(TaskNode.current != nil)
        return .seconds(10)
      }))
    let subscribing = Query<OperationSubscription, any Error>(path: ["subscribing"]) { _ in
      polled.subscribe { _ in }
    }
    let subscription = try await client.fetch(subscribing)
    await clock.sleepers(atLeast: 1)
    #expect(worksForRun.all == [false])
    subscription.cancel()
    client.clearStores()
  }
}
