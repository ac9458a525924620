import Operation
import Testing

@Suite("enableAutomaticRunning(onlyWhen:)", .timeLimit(.minutes(5)))
struct AutomaticRunningTests {
  private let network = ManualNetworkObserver(.disconnected)
  private let clock = ManualClock()
  private let script = Script()
  private let client: OperationClient

  init() {
    client = OperationClient(
      defaults: OperationDefaults(
        retryLimit: 0, runsAutomatically: false, networkObserver: network),
      clock: clock)
  }

  private func causes(
    of store: OperationStore<QueryState<Int, any Error>>
  ) -> (Recorder<OperationRun.Cause>, OperationSubscription) {
    let causes = Recorder<OperationRun.Cause>()
    let subscription = store.subscribe { event in
      if case .runEnded(_, let run) = event { causes.append(run.cause) }
    }
    return (causes, subscription)
  }

  @Test("Without the condition nothing runs automatically, and calls do") func gates()
    async throws
  {
    let store = client.store(
      for: OpenQuery(script: script).enableAutomaticRunning(onlyWhen: .connected)
        .rerun(every: .seconds(10)))
    let (causes, subscription) = causes(of: store)
    #expect(store.leaseCount == 0, "the first subscriber")
    store.invalidate()
    #expect(store.leaseCount == 0, "an invalidation")
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(10))
    await clock.sleepers(atLeast: 1)
    #expect(store.leaseCount == 0 && script.attempts == 0, "a poll")
    #expect(try await store.run() == 1)
    #expect(try await client.fetch(OpenQuery(script: script, path: ["b"])) == 2)
    #expect(causes.all == [.fetch])
    subscription.cancel()
    #expect(network.subscriberCount == 0)
  }

  @Test("With the condition, a store runs for a first subscriber, an invalidation and a poll")
  func runs() async {
    network.set(.connected)
    let store = client.store(
      for: OpenQuery(script: script).enableAutomaticRunning(onlyWhen: .connected)
        .rerun(every: .seconds(10)))
    let (causes, subscription) = causes(of: store)
    await causes.wait(forCount: 1)
    store.invalidate()
    await causes.wait(forCount: 2)
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(10))
    await causes.wait(forCount: 3)
    #expect(causes.all == [.subscriber, .invalidation, .poll])
    subscription.cancel()
  }

  @Test("When the condition becomes satisfied, a store that is stale and observed runs once")
  func becomesTrue()
    async
  {
    let remote = Remote<Int>()
    let store = client.store(
      for: remote.query().stale(after: .seconds(60)).enableAutomaticRunning(onlyWhen: .connected))
    network.set(.connected)
    #expect(store.leaseCount == 0, "there is no subscriber")
    network.set(.disconnected)
    let (causes, subscription) = causes(of: store)
    network.set(.connected)
    network.set(.disconnected)
    network.set(.connected)
    await remote.wait(forCalls: 1)
    remote.answer(1)
    await causes.wait(forCount: 1)
    network.set(.disconnected)
    network.set(.connected)
    #expect(store.leaseCount == 0, "the value is fresh")
    network.set(.disconnected)
    store.invalidate()
    #expect(store.isStale && store.leaseCount == 0)
    network.set(.connected)
    await remote.wait(forCalls: 2)
    remote.answer(2, to: 1)
    await causes.wait(forCount: 2)
    #expect(causes.all == [.rerun, .rerun] && remote.callCount == 2)
    #expect(store.currentValue == 2)
    subscription.cancel()
    #expect(network.subscriberCount == 0)
  }

  @Test("Without a condition a store always runs automatically, and with .never it never does")
  func withoutCondition() async {
    let store = client.store(for: OpenQuery(script: script).enableAutomaticRunning())
    let (causes, subscription) = causes(of: store)
    await causes.wait(forCount: 1)
    #expect(causes.all == [.subscriber])
    subscription.cancel()
    let never = client.store(
      for: OpenQuery(script: script, path: ["b"]).enableAutomaticRunning(onlyWhen: .never))
    let other = never.subscribe { _ in }
    never.invalidate()
    #expect(never.leaseCount == 0 && script.attempts == 1)
    other.cancel()
  }
}
