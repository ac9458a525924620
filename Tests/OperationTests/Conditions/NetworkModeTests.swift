import Operation
import Testing

@Suite("networkMode", .timeLimit(.minutes(5))) struct NetworkModeTests {
  private let network = ManualNetworkObserver(.disconnected)
  private let clock = ManualClock()
  private let client: OperationClient

  init() {
    client = OperationClient(
      defaults: OperationDefaults(
        retryLimit: 0, runsAutomatically: false, networkObserver: network),
      clock: clock)
  }

  /// Fails once and ends the connection, and then returns the number of the attempt.
  private func cutOff() -> Script {
    Script { [network] attempt, _, _ in
      if attempt > 1 { return .success(attempt) }
      network.set(.disconnected)
      return .failure(Refused(attempt: attempt))
    }
  }

  @Test("A request is not paused while it runs another one that waits for a connection")
  func inner() async throws {
    let (network, script) = (network, Script())
    let request = OpenQuery(script: script, path: ["inner"]).networkMode(.online)
    let store = client.store(
      for: Query<Int, any Error>(path: ["outer"]) { try await request.run(in: $0) })
    var events = client.events.makeAsyncIterator()
    let run = Task { try await store.run() }
    await store.settles { _ in network.subscriberCount == 1 }
    #expect(store.isLoading && !store.state.isPaused)
    network.set(.connected)
    #expect(try await run.value == 1)
    // The client's events are enabled, so the pause is an event, too.
    #expect(await events.next() != nil)
  }

  @Test("A start without a connection waits for it, and subscribers get one event for each step")
  func start() async throws {
    let script = Script()
    let store = client.store(for: OpenQuery(script: script).networkMode(.online))
    let steps = Recorder<String>()
    let subscription = store.subscribe { event in
      if case .stateChanged(let state) = event { steps.append(state.status.step) }
    }
    var statuses = store.statuses.makeAsyncIterator()
    #expect(await statuses.next()?.isIdle == true)
    let runs = (0..<2).map { _ in Task { try await store.run() } }
    await store.settles { $0.status.isPaused && $0.leaseCount == 2 }
    #expect(store.isLoading && store.state.isPaused && script.attempts == 0)
    while await statuses.next()?.isPaused == false {}
    network.set(.connected)
    for run in runs { #expect(try await run.value == 1) }
    while await statuses.next()?.isSuccess == false {}
    await steps.wait(forCount: 5)
    #expect(steps.all == ["idle", "loading", "paused", "loading", "1"])
    #expect(network.subscriberCount == 0)
    subscription.cancel()
  }

  @Test(
    "A retry without a connection waits for it, in both modes that wait",
    arguments: [NetworkMode.online, .offlineFirst])
  func retries(mode: NetworkMode) async throws {
    network.set(.connected)
    let script = cutOff()
    let query = OpenQuery(script: script).retry(limit: 1).backoff(.noBackoff).networkMode(mode)
    let store = client.store(for: query)
    async let value = store.run()
    await store.settles { $0.status.isPaused }
    #expect(script.attempts == 1 && store.error == nil)
    network.set(.connected)
    #expect(try await value == 2)
    #expect(network.subscriberCount == 0)
  }

  @Test("offlineFirst makes its first attempt with or without a connection")
  func offlineFirst() async throws {
    let store = client.store(for: OpenQuery(script: Script()).networkMode(.offlineFirst))
    #expect(try await store.run() == 1)
    #expect(network.subscriberCount == 0)
  }

  @Test("always does not read the observer, and is the default") func always() async throws {
    let observer = CountingObserver()
    var defaults = OperationDefaults.testing
    defaults.networkObserver = observer
    let client = OperationClient(defaults: defaults, clock: clock)
    for (path, mode) in [("default", nil), ("always", NetworkMode.always)] {
      let query = OpenQuery(script: Script(failures: 1), path: [path])
        .retry(limit: 1).backoff(.noBackoff)
      let store = mode.map { client.store(for: query.networkMode($0)) }
      if let store {
        #expect(try await store.run() == 2)
      } else {
        #expect(try await client.store(for: query).run() == 2)
      }
    }
    #expect(observer.calls.value == 0)
    let online = client.store(for: OpenQuery(script: Script()).networkMode(.online))
    #expect(try await online.run() == 1)
    #expect(observer.calls.value == 1)
  }

  @Test("The mode of the defaults applies to a request without its own") func defaults()
    async throws
  {
    var defaults = OperationDefaults.testing
    defaults.networkMode = .online
    defaults.networkObserver = network
    let client = OperationClient(defaults: defaults)
    let store = client.store(for: OpenQuery(script: Script()))
    let run = Task { try await store.run() }
    await store.settles { $0.status.isPaused }
    let other = client.store(for: OpenQuery(script: Script(), path: ["b"]).networkMode(.always))
    #expect(try await other.run() == 1)
    network.set(.connected)
    #expect(try await run.value == 1)
  }

  @Test("A paused run is cancelled with its last lease, and unsubscribes from the observer")
  func lastLease() async {
    let script = Script()
    let store = client.store(for: OpenQuery(script: script).networkMode(.online))
    let runs = (0..<2).map { _ in Task { try await store.run() } }
    // The run is paused before it subscribes to the observer.
    await store.settles {
      $0.status.isPaused && $0.leaseCount == 2 && network.subscriberCount == 1
    }
    runs[0].cancel()
    await #expect(throws: CancellationError.self) { try await runs[0].value }
    #expect(store.status.isPaused && network.subscriberCount == 1)
    runs[1].cancel()
    await #expect(throws: CancellationError.self) { try await runs[1].value }
    #expect(store.status.isIdle && !store.isLoading)
    await store.settles { _ in network.subscriberCount == 0 }
    network.set(.connected)
    #expect(script.attempts == 0)
  }

  @Test("The last subscriber cancels the paused run that it started") func observers() async {
    let script = Script()
    let query = OpenQuery(script: script).enableAutomaticRunning().networkMode(.online)
    let store = client.store(for: query)
    let subscription = store.subscribe { _ in }
    await store.settles { $0.status.isPaused }
    subscription.cancel()
    #expect(store.status.isIdle)
    await store.settles { _ in network.subscriberCount == 0 }
    #expect(script.attempts == 0)
  }

  @Test("cancel and reset end paused runs for every caller", arguments: [false, true])
  func cancelAndReset(isReset: Bool) async {
    let script = Script()
    let store = client.store(for: OpenQuery(script: script).networkMode(.online))
    store.currentValue = 5
    let run = Task { try await store.run() }
    await store.settles { $0.status.isPaused }
    #expect(store.currentValue == 5)
    if isReset { store.reset() } else { store.cancel() }
    #expect(store.currentValue == (isReset ? nil : 5))
    #expect(isReset ? store.status.isIdle : store.status.isSuccess)
    await #expect(throws: CancellationError.self) { try await run.value }
    await store.settles { _ in network.subscriberCount == 0 }
    network.set(.connected)
    #expect(script.attempts == 0 && !store.isLoading)
  }

  @Test("The cancellation of a paused run removes its yielded value and its pause")
  func yields() async {
    network.set(.connected)
    let script = Script { [network] attempt, _, yield in
      yield(.success(7))
      network.set(.disconnected)
      return .failure(Refused(attempt: attempt))
    }
    let query = OpenQuery(script: script).retry(limit: 1).backoff(.noBackoff)
    let store = client.store(for: query.networkMode(.online))
    store.currentValue = 5
    let run = Task { try await store.run() }
    await store.settles { $0.status.isPaused }
    #expect(store.currentValue == 7)
    run.cancel()
    await #expect(throws: CancellationError.self) { try await run.value }
    #expect(store.currentValue == 5 && store.status.isSuccess)
    await store.settles { _ in network.subscriberCount == 0 }
  }

  @Test("A store is paused when all of its runs are") func severalRuns() async throws {
    let gate = AsyncGate()
    let script = Script { attempt, _, _ in
      await gate.wait()
      return .success(attempt)
    }
    let store = client.store(for: OpenQuery(script: script).networkMode(.online))
    let paused = Task { try await store.run() }
    await store.settles { $0.status.isPaused }
    var context = OperationContext.number(1)
    context.networkObserver = ManualNetworkObserver()
    let running = Task { [context] in try await store.run(using: context) }
    await script.contexts.wait(for: 1)
    #expect(store.status.isLoading && !store.state.isPaused)
    gate.open()
    #expect(try await running.value == 1)
    #expect(store.status.isPaused && store.currentValue == 1)
    network.set(.connected)
    #expect(try await paused.value == 2)
  }
}

extension NetworkModeTests {
  @Test("A request with a typed failure waits for a connection as well") func typed() async {
    let script = Script { attempt, _, _ in
      Task.isCancelled ? .failure(Refused(attempt: -1)) : .success(attempt)
    }
    let store = client.store(for: TypedQuery(script: script).networkMode(.online))
    let runs = (0..<2).map { _ in
      Task { () async -> Result<Int, Refused> in
        do throws(Refused) { return .success(try await store.run()) } catch {
          return .failure(error)
        }
      }
    }
    await store.settles { $0.status.isPaused && $0.leaseCount == 2 }
    network.set(.connected)
    for run in runs { #expect(await run.value == .success(1)) }
    network.set(.disconnected)
    let cancelled = Task { () async -> Result<Int, Refused> in
      do throws(Refused) { return .success(try await store.run()) } catch {
        return .failure(error)
      }
    }
    await store.settles { $0.status.isPaused }
    cancelled.cancel()
    // Only the request can make an error of this type.
    #expect(await cancelled.value == .failure(Refused(attempt: -1)))
    #expect(store.currentValue == 1 && store.error == nil && store.status.isSuccess)
    #expect(network.subscriberCount == 0)
  }

  @Test("Each page waits for the connection, and is fetched for the state at the end of the wait")
  func pages()
    async throws
  {
    let store = client.store(for: Numbers(server: PageServer()).networkMode(.online))
    for ids in [[0], [0, 1]] {
      let run = Task { try await store.fetchNextPage() }
      await store.settles { $0.status.isPaused }
      #expect(store.currentValue.ids == Array(ids.dropLast()))
      network.set(.connected)
      #expect(try await run.value?.id == ids.last)
      #expect(store.currentValue.ids == ids && store.status.isSuccess)
      network.set(.disconnected)
    }
    let cancelled = Task { try await store.fetchNextPage() }
    await store.settles { $0.status.isPaused }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    #expect(store.currentValue.ids == [0, 1] && !store.isLoading)
    await store.settles { _ in network.subscriberCount == 0 }
  }

  @Test("A run without a store and its retries wait as well") func withoutStore() async throws {
    var context = OperationContext()
    context.networkObserver = network
    let script = cutOff()
    let query = OpenQuery(script: script).retry(limit: 1).backoff(.noBackoff)
    let run = Task { [context] in try await query.networkMode(.online).run(in: context) }
    #expect(await eventually { network.subscriberCount == 1 })
    #expect(script.attempts == 0)
    network.set(.connected)
    #expect(await eventually { script.attempts == 1 && network.subscriberCount == 1 })
    network.set(.connected)
    #expect(try await run.value == 2)
    network.set(.disconnected)
    let cancelled = Task { [context] in
      try await OpenPlainRequest(script: script).networkMode(.online).run(in: context)
    }
    #expect(await eventually { network.subscriberCount == 1 })
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    #expect(script.attempts == 2 && network.subscriberCount == 0)
  }
}

extension NetworkModeTests {
  private func store(
    _ path: String, _ desk: MutationDesk, in client: OperationClient
  ) -> CallStore {
    client.store(
      for: Call(desk: desk, path: [path]).serialized(in: "scope").networkMode(.online))
  }

  /// Calls, and waits until the call is paused in the history of its store.
  private func call(_ name: String, _ store: CallStore) async -> Task<String, any Error> {
    let task = Task { try await store.mutate(with: name) }
    #expect(
      await eventually { store.history.last?.arguments == name && store.history.last!.isPaused })
    return task
  }

  @Test("Paused calls of one scope resume in the order in which they were made, across stores")
  func serialized() async throws {
    for _ in 0..<50 {
      let desk = MutationDesk()
      var defaults = OperationDefaults.testing
      defaults.networkObserver = network
      let client = OperationClient(defaults: defaults)
      let stores = ["a", "b"].map { store($0, desk, in: client) }
      var calls: [Task<String, any Error>] = []
      for index in 0..<6 { calls.append(await call("\(index)", stores[index % 2])) }
      #expect(stores[0].status.isPaused && stores[1].status.isPaused)
      #expect(stores[0].lines == ["0 ?", "2 ?", "4 ?"] && desk.begun == [])
      network.set(.connected)
      for (index, call) in calls.enumerated() { #expect(try await call.value == "done \(index)") }
      #expect(desk.begun == (0..<6).map(String.init) && desk.ended == desk.begun)
      #expect(stores[0].lines == [0, 2, 4].map { "\($0): done \($0)" })
      network.set(.disconnected)
    }
    #expect(network.subscriberCount == 0)
  }

  @Test("A paused call that is cancelled is removed from the queue and the history")
  func serializedCancellation() async throws {
    let desk = MutationDesk()
    let stores = ["a", "b"].map { store($0, desk, in: client) }
    let first = await call("0", stores[0])
    let second = await call("1", stores[1])
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    #expect(stores[0].lines == [] && stores[0].status.isIdle && stores[1].status.isPaused)
    network.set(.connected)
    #expect(try await second.value == "done 1")
    #expect(desk.begun == ["1"])
  }

  @Test("A call that is dequeued after the connection was lost again waits again")
  func serializedAgain() async throws {
    let desk = MutationDesk()
    desk.close()
    let (a, b) = (store("a", desk, in: client), store("b", desk, in: client))
    let first = await call("0", a)
    let second = await call("1", b)
    network.set(.connected)
    await desk.waiting("0")
    await b.settles { $0.status.isLoading }
    network.set(.disconnected)
    desk.open()
    #expect(try await first.value == "done 0")
    await b.settles { $0.status.isPaused }
    #expect(desk.begun == ["0"])
    network.set(.connected)
    #expect(try await second.value == "done 1")
  }
}

extension MutationState.Attempt {
  fileprivate var isPaused: Bool { status.isPaused }
}

extension OperationStatus where Value == Int {
  fileprivate var step: String {
    switch self {
    case .idle: "idle"
    case .loading: "loading"
    case .paused: "paused"
    case .result(.success(let value)): "\(value)"
    case .result(.failure(let error)): "\(error)"
    }
  }
}

/// An observer that always has a connection, and counts its reads and subscriptions.
private final class CountingObserver: NetworkObserver {
  let calls = Counter()

  var currentStatus: NetworkConnectionStatus {
    calls.increment()
    return .connected
  }

  func subscribe(
    _ handler: @escaping @Sendable (NetworkConnectionStatus) -> Void
  ) -> OperationSubscription {
    calls.increment()
    return .empty
  }
}
