import SharingOperation
import Testing

@Suite struct WrapperDescriptionTests {
  private let client = OperationClient.quiet()

  @Test("A wrapper has its path and its state") func wrappers() {
    let query = Query(path: ["number"]) { _ in 1 }
    @SharedQuery(query, client: client) var bound
    #expect("\($bound)" == #"SharedQuery(["number"], QueryState(idle))"#)
    @SharedQuery<QueryState<Int, any Error>> var unbound
    #expect("\($unbound)" == "SharedQuery(unbacked, QueryState(idle))")
    @SharedQuery(query, default: 5, client: client) var shown
    #expect("\($shown)" == #"SharedQuery(["number"], DefaultState(QueryState(idle), default: 5))"#)
    @SharedQuery(query, client: client, select: { $0 + 1 }) var selected
    #expect(
      "\($selected)" == #"SharedQuery(["number"], SelectedState(QueryState(idle), selected: nil))"#)
  }

  @Test("A task retries the latest call of a wrapper, which needs a store and a call")
  func retryLatestTask() async throws {
    let sum = Mutation(path: ["sum"]) { (numbers: [Int], _) in numbers.reduce(0, +) }
    @SharedQuery(sum, client: client) var result
    #expect(throws: MutationError.noArguments) { try $result.retryLatestTask() }
    try await $result.mutate(with: [4])
    #expect(try await $result.retryLatestTask().runIfNeeded() == 4)
    #expect($result.history.count == 2)
    @SharedQuery<MutationState<[Int], Int, Refusal>> var unbound
    #expect(throws: SharedQueryError.unbacked) { try $unbound.retryLatestTask() }
  }
}
