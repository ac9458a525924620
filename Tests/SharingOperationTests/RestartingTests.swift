import SharingOperation
import Testing

@Suite("Restarting through a wrapper", .timeLimit(.minutes(5))) struct RestartingTests {
  private let client = OperationClient.quiet()

  @Test("A restart calls the request again, and all callers return the new value")
  func restarts() async throws {
    let (calls, first, cancelled) = (Counter(), Door(), Log<Bool>())
    let query = Query(path: ["restarted"]) { _ in
      let call = calls.increment()
      if call == 1 {
        await first.passed()
        cancelled.append(Task.isCancelled)
      }
      return call
    }
    let wrapper = SharedQuery(query.deduplicated(), client: client)
    let caller = Task { [wrapper = wrapper.projectedValue] in try await wrapper.fetch() }
    while calls.count < 1 { await Task.yield() }
    #expect(try await wrapper.fetch(restarting: true) == 2)
    #expect(try await caller.value == 2)
    first.open()
    while cancelled.elements.isEmpty { await Task.yield() }
    #expect(cancelled.elements == [true])
    #expect(wrapper.wrappedValue == 2)
  }

  @Test("Without a restart a caller joins the run, and without a run one is started")
  func joins() async throws {
    let (calls, door) = (Counter(), Door())
    let query = Query(path: ["joined"]) { _ in
      let call = calls.increment()
      await door.passed()
      return call
    }
    let wrapper = SharedQuery(query.deduplicated(), client: client)
    let callers = (0..<2).map { _ in
      Task { [wrapper = wrapper.projectedValue] in try await wrapper.fetch(restarting: false) }
    }
    while wrapper.store?.leaseCount != 2 { await Task.yield() }
    door.open()
    for caller in callers { #expect(try await caller.value == 1) }
    #expect(try await wrapper.fetch(restarting: true) == 2)
  }

  @Test("A run that a restart starts has the rules of the wrapper's request")
  func ownRules() async throws {
    let calls = Counter()
    let query = Query(path: ["retried"]) { _ in
      let call = calls.increment()
      if call < 3 { throw Refusal(reason: "too early") }
      return call
    }
    let plain = SharedQuery(query, client: client)
    let retried = SharedQuery(query.retry(limit: 2).backoff(.noBackoff), client: client)
    #expect(try await retried.fetch(restarting: true) == 3)
    #expect(plain.wrappedValue == 3)
  }

  @Test("Without a store or without arguments it throws")
  func errors() async {
    let unbacked = SharedQuery<QueryState<Int, any Error>>()
    await #expect(throws: SharedQueryError.unbacked) { try await unbacked.fetch(restarting: true) }
    let mutation = SharedQuery(
      Mutation(path: ["never called"]) { (number: Int, _) in number }, client: client)
    await #expect(throws: MutationError.noArguments) { try await mutation.fetch(restarting: true) }
  }
}
