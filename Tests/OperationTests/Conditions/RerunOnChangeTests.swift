import Operation
import Synchronization
import Testing

/// A condition that a test switches.
private final class Switch: OperationRunSpecification {
  private let isOn: Mutex<Bool>
  private let changes = Broadcast<Void>()

  init(_ isOn: Bool = false) {
    self.isOn = Mutex(isOn)
  }

  var subscriberCount: Int { changes.subscriberCount }

  func set(_ isOn: Bool) {
    self.isOn.withLock { $0 = isOn }
    changes.send(())
  }

  func isSatisfied(in context: OperationContext) -> Bool { isOn.withLock { $0 } }

  func subscribe(
    in context: OperationContext, onChange: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    changes.subscribe { onChange() }
  }
}

@Suite struct RerunOnChangeTests {
  private let condition = Switch()
  private let client = OperationClient(
    defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false))

  private func causes(
    of store: OperationStore<QueryState<Int, any Error>>
  ) -> EventStream<OperationRun.Cause>.Iterator {
    store.events.compactMap { event -> OperationRun.Cause? in
      if case .runEnded(_, let run) = event { run.cause } else { nil }
    }.makeAsyncIterator()
  }

  @Test("An observed store runs when its condition becomes satisfied, with either modifier")
  func runs() async {
    let query = Query(path: ["a"]) { _ in 1 }
    for store in [
      client.store(for: query.rerunOnChange(of: condition)),
      .detached(query: Query(path: ["b"]) { _ in 1 }.refetchOnChange(of: condition)),
    ] {
      var causes = causes(of: store)
      condition.set(false)
      #expect(!store.isLoading && store.currentValue == nil)
      condition.set(true)
      #expect(await causes.next() == .rerun)
      #expect(store.currentValue == 1)
    }
  }

  @Test("A fresh store does not run, and neither does a store without subscribers")
  func doesNotRun() async throws {
    let store = client.store(
      for: Query(path: ["a"]) { _ in 1 }.neverStale().rerunOnChange(of: condition))
    condition.set(true)
    #expect(store.leaseCount == 0 && store.currentValue == nil)
    try await store.run()
    let subscription = store.subscribe { _ in }
    condition.set(true)
    #expect(store.leaseCount == 0)
    subscription.cancel()
  }

  @Test("A store subscribes to its conditions once while it has subscribers")
  func subscribes() {
    let store = client.store(for: Query(path: ["a"]) { _ in 1 }.rerunOnChange(of: condition))
    #expect(condition.subscriberCount == 0)
    let subscriptions = (0..<3).map { _ in store.subscribe { _ in } }
    #expect(condition.subscriberCount == 1)
    for subscription in subscriptions { subscription.cancel() }
    #expect(condition.subscriberCount == 0)
  }

  @Test("A change that leaves a condition satisfied starts no run", arguments: [false, true])
  func remains(isAutomatic: Bool) async {
    let (other, script) = (Switch(), Script())
    let either = condition || other
    let query = OpenQuery(script: script)
    let store =
      isAutomatic
      ? client.store(for: query.enableAutomaticRunning(onlyWhen: either))
      : client.store(for: query.rerunOnChange(of: either))
    let subscription = store.subscribe { _ in }
    for attempt in 1...2 {
      condition.set(true)
      await store.settles { !$0.isLoading && $0.currentValue == attempt }
      for isOn in [true, true, false] {
        other.set(isOn)
        #expect(!store.isLoading && script.attempts == attempt)
      }
      condition.set(false)
    }
    subscription.cancel()
  }

  @Test("Conditions are combined") func combined() {
    let (on, off) = (Switch(true), Switch(false))
    let context = OperationContext()
    #expect((on && on).isSatisfied(in: context))
    #expect(!(on && off).isSatisfied(in: context))
    #expect((on || off).isSatisfied(in: context))
    #expect(!(off || off).isSatisfied(in: context))
    #expect((!off).isSatisfied(in: context))
    #expect((.always && on).isSatisfied(in: context))
    #expect(!(on && .never).isSatisfied(in: context))
    let changes = Atomic(0)
    let subscription = (on && !off).subscribe(in: context) {
      changes.wrappingAdd(1, ordering: .relaxed)
    }
    on.set(false)
    off.set(true)
    #expect(changes.load(ordering: .relaxed) == 2)
    subscription.cancel()
    #expect(on.subscriberCount == 0 && off.subscriberCount == 0)
  }
}
