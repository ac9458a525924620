import SharingOperation
import Testing

/// Wrappers of one store whose requests have different modifiers.
@Suite(.timeLimit(.minutes(5))) struct WrapperRules {
  private let clock = ManualClock()
  private let client: OperationClient
  private let calls = Counter()

  init() { client = OperationClient(defaults: .testing, clock: clock) }

  private var query: Query<Int, any Error> {
    Query(path: ["query"]) { [calls] _ in calls.increment() }
  }

  private func wrapper<Request: QueryRequest>(
    _ request: Request
  ) -> SharedQuery<Request.State> where Request.State: ValueInitializedState {
    SharedQuery(request, client: client)
  }

  @Test("A wrapper runs automatically beside a manual one") func manual() async {
    let first = wrapper(query.manual())
    await clock.settle()
    #expect(calls.count == 0)
    let second = wrapper(query.neverStale())
    await clock.settle()
    #expect(calls.count == 1)
    second.invalidate()
    await clock.settle()
    #expect(calls.count == 2)
    withExtendedLifetime((first, second)) {}
  }

  @Test("A binding to the same store with other rules follows these") func newRules() async {
    let wrapper = wrapper(query.neverStale().manual())
    await clock.settle()
    #expect(calls.count == 0)
    wrapper.bind(to: query.rerun(every: .seconds(1), inBackground: true))
    await clock.settle()
    await clock.advance(by: .seconds(1))
    await clock.settle()
    let count = calls.count
    #expect(count > 0)
    wrapper.bind(to: query.neverStale().manual())
    await clock.advance(by: .seconds(5))
    await clock.settle()
    #expect(calls.count == count)
  }

  @Test("A wrapper has its own rules in a store that was made for a request with others")
  func otherStore() async {
    let store = client.store(for: query.neverStale(), initialValue: 7)
    let wrapper = wrapper(query.stale(after: .zero))
    #expect(wrapper.isStale && !store.isStale)
    await clock.settle()
    #expect(calls.count == 1)
  }

  @Test("A poll with another condition, or another interval, is another poll")
  func polls() async {
    let first = wrapper(query.rerun(every: .seconds(10), while: .never, inBackground: true))
    let second = wrapper(query.rerun(every: .seconds(10), while: .always, inBackground: true))
    let third = wrapper(query.rerun(every: .seconds(4), while: .always, inBackground: true))
    await clock.settle()
    let before = calls.count
    await clock.advance(by: .seconds(4))
    await clock.settle()
    #expect(calls.count == before + 1)
    await clock.advance(by: .seconds(6))
    await clock.settle()
    // After 8 and after 10 seconds.
    #expect(calls.count == before + 3)
    withExtendedLifetime((first, second, third)) {}
  }

  @Test("Equal modifiers are one poll, however they were made")
  func equalPolls() async {
    let wrappers = (0..<3).map { _ in
      wrapper(query.rerun(every: .seconds(10), while: .connected || .always, inBackground: true))
    }
    await clock.settle()
    let before = calls.count
    await clock.advance(by: .seconds(10))
    await clock.settle()
    #expect(calls.count == before + 1)
    withExtendedLifetime(wrappers) {}
  }

  @Test("Conditions of two wrappers start runs independently")
  func conditions() async {
    let (one, two) = (Broadcast<Bool>(), Broadcast<Bool>())
    let first = wrapper(query.rerunOnChange(of: .latest(of: one)))
    let second = wrapper(query.rerunOnChange(of: .latest(of: two)))
    await clock.settle()
    for (broadcast, count) in [(two, 1), (one, 2)] {
      let before = calls.count
      broadcast.send(true)
      await clock.settle()
      #expect(calls.count == before + 1, "\(count)")
    }
    withExtendedLifetime((first, second)) {}
  }

  @Test("A wrapper that follows a manual one starts no run of its store") func followedManually()
    async
  {
    let store = client.store(for: query)
    let first = wrapper(query.manual())
    let second = SharedQuery(dependingOn: first) { (number: Int) in
      Query<Int, any Error>(path: ["second", number]) { _ in number }
    }
    await clock.settle()
    #expect(calls.count == 0 && !store.isLoading)
    withExtendedLifetime((first, second)) {}
  }

  @Test("A condition that was replaced starts no runs") func replacedCondition() async {
    let broadcast = Broadcast<Bool>()
    let wrapper = wrapper(
      query.enableAutomaticRunning(onlyWhen: .latest(of: broadcast)).enableAutomaticRunning())
    await clock.settle()
    let before = calls.count
    broadcast.send(true)
    await clock.settle()
    #expect(calls.count == before)
    withExtendedLifetime(wrapper) {}
  }

  @Test("A binding to a request with another number of retries has that number")
  func retries() async {
    let request = Query<Int, any Error>(path: ["retried"]) { [calls] _ in
      calls.increment()
      throw Refusal(reason: "no")
    }.backoff(.noBackoff)
    let wrapper = wrapper(request.retry(limit: 0).manual())
    wrapper.bind(to: request.retry(limit: 2).manual())
    _ = try? await wrapper.fetch()
    #expect(calls.count == 3)
  }

  @Test("Readers of isStale are notified of a failure") func stalenessOfFailure() {
    let wrapper = wrapper(query.stale(after: .seconds(60)).manual())
    wrapper.store?.currentValue = 1
    let changes = track { #expect(!wrapper.isStale) }
    wrapper.store?.setResult(to: .failure(Refusal(reason: "no")))
    #expect(changes.count == 1 && wrapper.isStale)
  }

  @Test("Wrappers with modifiers keep the defaults with which their store was created")
  func defaults() async {
    let store = client.store(for: query, initialValue: 7)
    client.setDefaults(matching: ["query"]) { $0.runsAutomatically = false }
    let wrapper = wrapper(query.stale(after: .zero))
    await clock.settle()
    #expect(calls.count == 1 && store.currentValue == 1)
    withExtendedLifetime(wrapper) {}
  }

  private struct Model {
    @SharedQuery<QueryState<Int, any Error>> var number

    init(_ client: OperationClient, _ query: Query<Int, any Error>) {
      _number = SharedQuery(query.manual(), client: client)
    }
  }

  // In a process of its own: the rule is one of the process.
  @Test("A model with a client of its own does not use the shared one")
  func requiredClient() async {
    await #expect(processExitsWith: .success) {
      OperationClient.requiresCurrent = true
      let client = OperationClient(defaults: .testing, clock: ManualClock())
      let query = Query<Int, any Error>(path: ["query"]) { _ in 1 }
      let issues = Log<OperationIssue.Kind>()
      OperationIssue.withHandler({ issues.append($0.kind) }) {
        let model = Model(client, query)
        _ = SharedQuery(OperationStore.detached(query: query))
        #expect(model.number == nil && issues.elements.isEmpty)
        let unbound = SharedQuery<QueryState<Int, any Error>>()
        unbound.bind(to: query.manual())
      }
      #expect(issues.elements == [.missingClient])
    }
  }
}
