import SharingOperation
import Testing

private func number() -> some QueryRequest<Int, QueryState<Int, any Error>> {
  Query(path: ["number"]) { _ in 1 }
}

private func pages() -> some StatefulOperationRequest<
  PaginatedResult<Int, Int>, PaginatedState<Int, Int, any Error>
> {
  Paginated(path: ["pages"], initialPageId: 0, nextPageId: { _, _ in nil }) { _, _ in 1 }
}

private func change() -> some StatefulOperationRequest<Int, MutationState<Int, Int, any Error>> {
  Mutation(path: ["change"]) { number, _ in number }
}

private final class Model {
  @SharedQuery(number()) var plain
  @SharedQuery(number().retry(limit: 1)) var modified
  @SharedQuery(number().retry(limit: 1).map { "\($0)" }.stale(after: .seconds(2))) var mapped
  @SharedQuery(number().stale(after: .seconds(2)), default: 3) var defaulted
  @SharedQuery(number().stale(after: .seconds(2)).retry(limit: 2)) var initial = 4
  @SharedQuery(number().retry(limit: 1), select: { $0.map { -$0 } }) var negative
  @SharedQuery(pages().retry(limit: 1)) var pagesOfNumbers
  @SharedQuery(pages().retry(limit: 1), default: [.init(id: 7, value: 7)]) var defaultedPages
  @SharedQuery(pages().retry(limit: 1), select: { $0.count }) var pageCount
  @SharedQuery(change().retry(limit: 1)) var changed
  @SharedQuery(change().retry(limit: 1), default: 3) var defaultedChange
  @SharedQuery(change().retry(limit: 1), select: { $0.map { 2 * $0 } }) var doubledChange
}

@Suite struct OpaqueRequestTests {
  @Test("Opaque requests with modifiers are written inside of a wrapper's initialiser")
  func model() async throws {
    let client = OperationClient(
      defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false), clock: ManualClock())
    let model = OperationClient.withCurrent(client) { Model() }
    #expect(model.defaulted == 3)
    #expect(try await model.$modified.fetch() == 1)
    #expect((model.plain, model.modified, model.defaulted, model.initial) == (1, 1, 1, 1))
    #expect(model.negative == -1)
    #expect(model.defaultedPages.map(\.id) == [7] && model.pageCount == 0)
    #expect(try await model.$pagesOfNumbers.value().map(\.value) == [1])
    #expect(model.defaultedPages.map(\.id) == [0] && model.pageCount == 1)
    #expect(model.defaultedChange == 3 && model.doubledChange == nil)
    #expect(try await model.$changed.mutate(with: 5) == 5)
    #expect(model.defaultedChange == 5 && model.doubledChange == 10)
  }
}
