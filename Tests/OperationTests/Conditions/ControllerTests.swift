import Testing

@testable import Operation

/// A controller that retains its controls, and logs its calls.
final class Knob: OperationController {
  typealias Number = QueryState<Int, any Error>
  typealias Hook = @Sendable (String, OperationControls<Number>) -> Void

  private let log: Recorder<String>
  private let name: String
  private let hook: Hook
  private let retained = Recorder<OperationControls<Number>>()
  private let subscriptions = Recorder<OperationSubscription>()

  init(_ log: Recorder<String>, name: String = "", hook: @escaping Hook = { _, _ in }) {
    self.log = log
    self.name = name
    self.hook = hook
  }

  var controls: OperationControls<Number> { retained.all[0] }

  func control(with controls: OperationControls<Number>) -> OperationSubscription {
    retained.append(controls)
    note("control", controls)
    let subscription = OperationSubscription { [log, name] in log.append(name + "cancel") }
    subscriptions.append(subscription)
    return subscription
  }

  func observationBegan(with controls: OperationControls<Number>) { note("began", controls) }
  func observationEnded(with controls: OperationControls<Number>) { note("ended", controls) }

  private func note(_ what: String, _ controls: OperationControls<Number>) {
    log.append(name + what)
    hook(what, controls)
  }
}

@Suite(.timeLimit(.minutes(5))) struct ControllerTests {
  private let log = Recorder<String>()
  private let clock = ManualClock()

  private func client(isAutomatic: Bool = false) -> OperationClient {
    OperationClient(
      defaults: OperationDefaults(retryLimit: 0, runsAutomatically: isAutomatic), clock: clock)
  }

  private func query(_ id: Int = 0) -> Query<Int, any Error> {
    Query(path: ["number", id]) { _ in id }
  }

  @Test("The store displays what a controller yields, from the start")
  func yields() {
    for isDetached in [false, true] {
      let knob = Knob(log) { what, controls in
        if what == "control" { controls.yield(1) }
      }
      let client = client()
      let request = query().controlled(by: knob)
      let store = isDetached ? .detached(query: request) : client.store(for: request)
      #expect(store.currentValue == 1)
      knob.controls.yield(error: Failed(code: 2))
      #expect(store.error as? Failed == Failed(code: 2) && store.currentValue == 1)
      knob.controls.yield(with: .success(3))
      #expect(store.currentValue == 3 && store.error == nil)
      knob.controls.yield(nil)
      #expect(store.currentValue == nil)
      knob.controls.resetState()
      #expect(store.valueUpdateCount == 0 && store.status.isIdle)
    }
  }

  @Test("A controller is called once for each store, with its path and context")
  func stores() {
    let knob = Knob(log)
    let client = client()
    for id in [1, 2, 1, 2] { _ = client.store(for: query(id).controlled(by: knob)) }
    #expect(log.all == ["control", "control"])
    #expect(knob.controls.path == ["number", 1])
    #expect(knob.controls.context.operationClient === client)
    let clashing = TypedQuery(script: Script(), path: ["number", 1])
      .controlled(by: Constant(value: 9))
    let other = OperationIssue.withHandler({ _ in }) { client.store(for: clashing) }
    #expect(other.currentValue == 9)
    #expect(log.count == 2)
  }

  @Test("A rerun needs subscribers, and joins a run on which they hold a lease")
  func reruns() async {
    let (knob, remote) = (Knob(log), Remote<Int>())
    let store = client().store(for: remote.query().neverStale().controlled(by: knob))
    knob.controls.rerun()
    #expect(!store.isLoading && !knob.controls.isObserved)
    let (events, subscription) = store.record()
    #expect(knob.controls.isObserved)
    for round in 0..<2 {
      knob.controls.rerun()
      knob.controls.rerun()
      await remote.wait(forCalls: round + 1)
      remote.answer(round, to: round)
      await events.wait { $0.last?.name == "ended \(round)" }
      #expect(store.currentValue == round && !store.isLoading)
    }
    #expect(remote.callCount == 2)
    let causes = events.all.compactMap { event -> OperationRun.Cause? in
      if case .runEnded(_, let run) = event { run.cause } else { nil }
    }
    #expect(causes == [.rerun, .rerun])
    subscription.cancel()
    knob.controls.rerun()
    #expect(store.leaseCount == 0 && remote.callCount == 2)
  }

  @Test("An invalidation by a controller is followed by a run, also while one is in flight")
  func invalidates() async {
    let (knob, remote) = (Knob(log), Remote<Int>())
    let store = client(isAutomatic: true).store(
      for: remote.query().neverStale().controlled(by: knob))
    let subscription = store.subscribe { _ in }
    await remote.wait(forCalls: 1)
    knob.controls.invalidate()
    remote.answer(1)
    await remote.wait(forCalls: 2)
    #expect(store.currentValue == 1 && store.isStale)
    remote.answer(2, to: 1)
    await store.settles { !$0.isLoading }
    #expect(store.currentValue == 2 && !store.isStale)
    subscription.cancel()
    knob.controls.invalidate()
    #expect(store.isStale && store.leaseCount == 0)
  }

  @Test("A controller is notified of the last subscriber, and of the first one before its run")
  func observation() async {
    let knob = Knob(log) { what, controls in
      if what == "began" { controls.yield(7) }
    }
    let store = client(isAutomatic: true).store(for: query().neverStale().controlled(by: knob))
    for _ in 0..<2 {
      let subscriptions = (0..<3).map { _ in store.subscribe { _ in } }
      // The value that the controller yielded is fresh, so there is nothing to fetch.
      #expect(store.leaseCount == 0)
      for subscription in subscriptions { subscription.cancel() }
    }
    #expect(log.all == ["control", "began", "ended", "began", "ended"])
    #expect(store.currentValue == 7 && store.valueUpdateCount == 2)
  }

  @Test("Several controllers of a request are called in their order")
  func several() {
    let request = query().controlled(by: Knob(log, name: "a ")).retry(limit: 1)
      .controlled(by: Knob(log, name: "b "))
    do {
      let store = client().store(for: request)
      store.subscribe { _ in }.cancel()
    }
    #expect(log.all.prefix(4) == ["a control", "b control", "a began", "b began"])
    #expect(log.all.dropFirst(4).prefix(2) == ["a ended", "b ended"])
    #expect(log.all.dropFirst(6).sorted() == ["a cancel", "b cancel"])
  }

  @Test("A controller for the state under a map gets the store of the mapped query")
  func mapped() async {
    let request = query().controlled(by: Knob(log, name: "a ")).map { $0 + 1 }
      .map { String($0) }.controlled(by: Texts(log: log))
    let client = client()
    let (issues, store) = await issues { client.store(for: request) }
    #expect(issues.isEmpty)
    store.subscribe { _ in }.cancel()
    #expect(log.all.contains("texts") && log.all.contains("a control"))
  }

  @Test("A controller for the state under a modifier that changes it is reported")
  func mismatch() async {
    struct Idle: OperationController {
      typealias State = QueryState<Int, Refused>
      func control(with controls: OperationControls<State>) -> OperationSubscription { .empty }
    }
    let request = TypedQuery(script: Script()).controlled(by: Idle()).timeout(after: .seconds(9))
    let client = client()
    let (issues, _) = await issues { client.store(for: request) }
    #expect(issues.map(\.kind) == [.stateMismatch])
    #expect(issues.first?.message.hasPrefix("A controller of [\"typed\"] is for another") == true)
  }

  private struct Texts: OperationController {
    let log: Recorder<String>

    func control(
      with controls: OperationControls<QueryState<String, any Error>>
    ) -> OperationSubscription {
      log.append("texts")
      controls.yield("text")
      return .empty
    }
  }

  @Test("Pages and mutations have controllers as well") func kinds() {
    let mutation = Mutation<Int, Int>(path: ["m"]) { arguments, _ in arguments }
    let mutations = client().store(for: mutation.controlled(by: Constant(value: 4)))
    #expect(mutations.currentValue == 4)
    let pages = Paginated<Int, String>(
      path: ["p"], initialPageId: 0, nextPageId: { _, _ in nil }
    ) { _, _ in "fetched" }
    let page = PaginatedPage(id: 3, value: "pushed")
    let store = client().store(for: pages.controlled(by: Constant(value: [page])))
    #expect(store.currentValue.map(\.value) == ["pushed"])
  }

  private struct Constant<State: OperationState>: OperationController {
    let value: State.StateValue

    func control(with controls: OperationControls<State>) -> OperationSubscription {
      controls.yield(value)
      return .empty
    }
  }
}

@Suite(.timeLimit(.minutes(5))) struct ControllerLifetimeTests {
  private let log = Recorder<String>()

  @Test("The controller and the store are released, although the controller retains its controls")
  func lifetime() {
    weak var knob: Knob?
    weak var store: OperationStore<Knob.Number>?
    let controls: OperationControls<Knob.Number>
    do {
      let made = Knob(log)
      knob = made
      let detached = OperationStore.detached(
        query: Query(path: ["a"]) { _ in 1 }.controlled(by: made))
      store = detached
      controls = made.controls
      detached.subscribe { _ in }.cancel()
      #expect(log.all == ["control", "began", "ended"])
    }
    #expect(store == nil && knob == nil)
    #expect(log.all == ["control", "began", "ended", "cancel"])
    controls.yield(1)
    controls.yield(error: Failed())
    controls.rerun()
    controls.invalidate()
    controls.resetState()
    #expect(!controls.isObserved && controls.path == ["a"])
    #expect(controls.context.writtenKeyCount == 0)
  }

  @Test("A subscription that is the last owner of a store ends its observation first")
  func lastSubscription() {
    let knob = Knob(log)
    var subscription = OperationSubscription.empty
    do {
      let request = Query(path: ["a"]) { _ in 1 }.controlled(by: knob)
      subscription = OperationStore.detached(query: request).subscribe { _ in }
    }
    #expect(log.all == ["control", "began"])
    subscription = .empty
    withExtendedLifetime(subscription) {}
    // The store is released although the controller still has its controls and subscription.
    #expect(log.all == ["control", "began", "ended", "cancel"])
    withExtendedLifetime(knob) {}
  }

  @Test("A store that was removed from the client is controlled until its last owner releases it")
  func eviction() async {
    let clock = ManualClock()
    let client = OperationClient(defaults: .testing, clock: clock)
    let request = Query(path: ["a"]) { _ in 1 }.controlled(
      by: Knob(log) { what, controls in
        if what == "control" { controls.yield(1) }
      })
    do {
      let store = client.store(for: request)
      await clock.advance(by: .seconds(300))
      #expect(!client.retains(["a"]))
      #expect(log.all == ["control"] && store.currentValue == 1)
    }
    #expect(log.all == ["control", "cancel"])
    _ = client.store(for: request)
    #expect(log.all == ["control", "cancel", "control"])
    client.clearStore(with: ["a"])
    #expect(log.all == ["control", "cancel", "control", "cancel"])
  }
}
