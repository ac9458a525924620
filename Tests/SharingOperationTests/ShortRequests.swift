import SharingOperation
struct ShortUser: Sendable { var id: Int }
struct ShortPages: SimplePaginatedRequest {
  let userID: Int
  let initialPageId = 1
  var path: OperationPath { ["z", userID] }
  func pageId(
    after page: PaginatedPage<Int, [ShortUser]>, using paging: PaginatedPaging<Int, [ShortUser]>,
    in context: OperationContext
  ) -> Int? { nil }
  func fetchPage(
    using paging: PaginatedPaging<Int, [ShortUser]>, in context: OperationContext
  ) async throws -> [ShortUser] { [] }
}
struct ShortQuery: SimpleQueryRequest, Hashable {
  let id: Int
  func fetch(in context: OperationContext) async throws -> [ShortUser] { [] }
}
struct ShortMutation: SimpleMutationRequest, Hashable {
  func mutate(with arguments: ShortUser, in context: OperationContext) async throws -> [ShortUser] {
    [arguments]
  }
}
