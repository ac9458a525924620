import SharingOperation
import Testing

/// A model whose requests are in another file, where the compiler has to infer their states first.
private final class ShortModel {
  @SharedQuery(ShortPages(userID: 1)) var pages
  @SharedQuery(ShortQuery(id: 1)) var query
  @SharedQuery(ShortMutation()) var mutation

  func count(of list: SharedQuery<ShortPages.State>) -> Int { list.wrappedValue.count }
}

@Suite struct ShortFormModelTests {
  @Test("Requests in the short form are read by a model in another file") func model() async throws
  {
    let model = OperationClient.withCurrent(.quiet()) { ShortModel() }
    try await model.$pages.fetch()
    #expect(model.count(of: model.$pages) == 1)
    #expect(try await model.$query.fetch().isEmpty)
    #expect(try await model.$mutation.mutate(with: ShortUser(id: 3)).map(\.id) == [3])
  }
}
