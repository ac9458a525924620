import SharingOperation
import Testing

/// Wrappers of requests whose path is not equal to itself: each has its own store.
@Suite("Bad input: paths of wrappers", .timeLimit(.minutes(5))) struct UnequalPathTests {
  private func query(_ number: Int) -> Query<Int, any Error> {
    Query(path: ["number", Double.nan]) { _ in number }
  }

  /// Returns the kinds of the issues that `body` reports.
  private func kinds(
    _ body: () async throws -> Void
  ) async rethrows -> [OperationIssue.Kind] {
    let kinds = Broadcast<OperationIssue.Kind>()
    var reader = kinds.values.makeAsyncIterator()
    try await OperationIssue.withHandler({ kinds.send($0.kind) }) { try await body() }
    kinds.finish()
    var all: [OperationIssue.Kind] = []
    while let kind = await reader.next() { all.append(kind) }
    return all
  }

  @Test("Each wrapper has its own store, which is released with it and is not in the client")
  func ownStore() async throws {
    let client = OperationClient(defaults: .testing)
    weak var left: OperationStore<QueryState<Int, any Error>>?
    let reported = try await kinds { () async throws -> Void in
      @SharedQuery(query(1), client: client) var first
      @SharedQuery(query(2), client: client) var second
      #expect(try await $first.fetch() == 1)
      #expect(try await $second.fetch() == 2)
      #expect(first == 1)
      $first.bind(to: query(3))
      #expect(try await $first.fetch() == 3)
      left = $first.store
      #expect(left != nil)
    }
    #expect(reported == Array(repeating: .unequalIdentity, count: 3))
    #expect(client.stores(matching: []).isEmpty)
    #expect(client.activity == OperationActivity())
    // The task of a run may not have ended yet.
    while left != nil { await Task.yield() }
  }
}
