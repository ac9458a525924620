import FoundationEssentials
import SharingOperation
import Testing

/// Wrappers of requests that share a store, and each bring their own rules.
@Suite("Rules of wrappers that share a store", .timeLimit(.minutes(5))) struct OwnRulesTests {
  private let clock = ManualClock(now: Date(timeIntervalSince1970: 1_700_000_000))
  private let calls = Counter()

  private var request: Query<Int, any Error> {
    Query(path: ["counted"]) { [calls] _ in calls.increment() }
  }

  @Test("The second of two wrappers polls, though the first one made the store", arguments: [0, 1])
  func polling(position: Int) async throws {
    let client = OperationClient.quiet(clock: clock)
    let polled = request.rerun(every: .seconds(1), inBackground: true)
    var wrappers: [SharedQuery<QueryState<Int, any Error>>] = []
    if position == 0 { wrappers.append(SharedQuery(request, client: client)) }
    wrappers.append(SharedQuery(polled, client: client))
    if position == 1 { wrappers.append(SharedQuery(request, client: client)) }
    for count in 1...3 {
      await clock.sleepers(atLeast: 1)
      await clock.advance(by: .seconds(1))
      while wrappers[0].wrappedValue != count || wrappers[1].isLoading { await Task.yield() }
    }
    // The poll ends with its wrapper, and the other wrapper still observes.
    wrappers.remove(at: 1 - position)
    while clock.sleeperCount > 0 { await Task.yield() }
    await clock.advance(by: .seconds(10))
    await clock.settle()
    #expect(calls.count == 3)
    #expect(wrappers[0].store?.subscriberCount == 1)
  }

  @Test("Wrappers of equal requests share one poll")
  func sharedPoll() async throws {
    let client = OperationClient.quiet(clock: clock)
    let wrappers = (0..<5).map { _ in
      SharedQuery(request.rerun(every: .seconds(1), inBackground: true), client: client)
    }
    await clock.sleepers(atLeast: 1)
    #expect(clock.sleeperCount == 1)
    await clock.advance(by: .seconds(1))
    while wrappers[4].wrappedValue != 1 { await Task.yield() }
    #expect(calls.count == 1)
  }

  @Test("Each wrapper calls a mutation with its own retries, with every method")
  func mutations() async throws {
    struct Failed: Error {}
    let client = OperationClient.quiet(clock: clock)
    let failing = Mutation<Int, Int>(path: ["failing"]) { [calls] number, _ in
      if calls.increment() % 3 != 0 { throw Failed() }
      return number
    }
    let plain = SharedQuery(failing, client: client)
    let patient = SharedQuery(failing.retry(limit: 2).backoff(.noBackoff), client: client)
    #expect(try await patient.mutate(with: 4) == 4)
    #expect(try await patient.retryLatest() == 4)
    #expect(try await patient.mutateTask(with: 5).runIfNeeded() == 5)
    #expect(try await patient.retryLatestTask().runIfNeeded() == 5)
    #expect(try await patient.runTask().runIfNeeded() == 5)
    #expect(calls.count == 15)
    await #expect(throws: Failed.self) { try await plain.mutate(with: 6) }
    #expect(calls.count == 16)
  }

  @Test("Of calls in a scope that is ignored, the one that was made last is displayed")
  func ignoredScope() async throws {
    let client = OperationClient.quiet(clock: clock)
    let doors = [Door(), Door()]
    let call = Mutation<Int, Int>(path: ["call"]) { [calls] index, _ in
      calls.increment()
      await doors[index].passed()
      return index
    }
    let store = client.store(for: call)
    let wrapper = OperationIssue.withHandler({ _ in }) {
      SharedQuery(call.serialized(in: "ignored"), client: client)
    }
    let first = Task { try await wrapper.mutate(with: 0) }
    while calls.count < 1 { await Task.yield() }
    let second = Task { try await wrapper.mutate(with: 1) }
    while calls.count < 2 { await Task.yield() }
    doors[1].open()
    #expect(try await second.value == 1)
    doors[0].open()
    #expect(try await first.value == 0)
    #expect(store.currentValue == 1)
  }

  @Test("Each wrapper, and each prefetch, fetches pages with its own retries")
  func pages() async throws {
    struct Failed: Error {}
    let client = OperationClient.quiet(clock: clock)
    let failing = Paginated<Int, Int>(
      path: ["failing"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 },
      previousPageId: { page, _ in page.id - 1 }
    ) { [calls] paging, _ in
      if calls.increment() % 2 != 0 { throw Failed() }
      return paging.pageId
    }
    let plain = SharedQuery(failing, client: client)
    let request = failing.retry(limit: 9).backoff(.noBackoff)
    let patient = SharedQuery(request, client: client)
    #expect(try await patient.fetchNextPage()?.id == 0)
    #expect(try await patient.fetchNextPageTask().runIfNeeded()?.id == 1)
    #expect(try await patient.fetchPreviousPage()?.id == -1)
    #expect(try await patient.fetchPreviousPageTask().runIfNeeded()?.id == -2)
    #expect(try await patient.fetchAllPages().count == 4)
    #expect(try await patient.fetchAllPagesTask().runIfNeeded().count == 4)
    await client.prefetch(request, pages: 6)
    #expect(patient.wrappedValue.ids == [-2, -1, 0, 1, 2, 3])
    await #expect(throws: Failed.self) { try await plain.fetchNextPage() }
  }

  @Test("Each wrapper is stale by its own request, and fetches with its own retries")
  func staleness() async throws {
    struct Failed: Error {}
    let client = OperationClient.quiet(clock: clock)
    let failing = Query<Int, any Error>(path: ["failing"]) { [calls] _ in
      if calls.increment() < 3 { throw Failed() }
      return 7
    }
    let plain = SharedQuery(failing.neverStale(), client: client)
    let patient = SharedQuery(
      failing.retry(limit: 2).backoff(.noBackoff).stale(after: .seconds(5)), client: client)
    #expect(try await patient.fetch() == 7)
    #expect(calls.count == 3)
    #expect(!plain.isStale && !patient.isStale)
    await clock.advance(by: .seconds(5))
    #expect(!plain.isStale && patient.isStale)
    #expect(plain.wrappedValue == 7)
  }

  @Test("Binding to the same store with other rules applies these")
  func rebinding() async throws {
    let client = OperationClient.quiet(clock: clock)
    let wrapper = SharedQuery(request, client: client)
    try await wrapper.fetch()
    #expect(wrapper.isStale)
    wrapper.bind(to: request.neverStale())
    #expect(!wrapper.isStale)
    #expect(wrapper.store?.subscriberCount == 1)
    wrapper.bind(to: request)
    #expect(wrapper.isStale)
  }

  @Test("Binding to a request that counts as the same applies its closures")
  func closures() async throws {
    let client = OperationClient.quiet(clock: clock)
    let wrapper = SharedQuery(request, client: client)
    try await wrapper.fetch()
    for isStale in [true, false, true] {
      let state = track { _ = wrapper.state }
      wrapper.bind(to: request.staleWhen { _, _ in isStale })
      #expect(wrapper.isStale == isStale)
      #expect(wrapper.store?.subscriberCount == 1)
      wrapper.store?.setResult(to: .failure(Refusal(reason: "no")))
      #expect(state.count == 1)
      try await wrapper.fetch()
    }
  }

  @Test("A dependent wrapper uses the closures of the newest request for a store")
  func dependentClosures() async throws {
    let client = OperationClient.quiet(clock: clock)
    let isStale = SharedQuery(WrittenNumber(path: ["isStale"]), client: client)
    let wrapper = SharedQuery(dependingOn: isStale) { [request] (isStale: Int) in
      request.staleWhen { _, _ in isStale == 1 }
    }
    for value in [1, 0, 1] {
      isStale.withLock { $0 = value }
      if value == 1 { try await wrapper.fetch() }
      #expect(wrapper.isStale == (value == 1))
    }
  }
}
