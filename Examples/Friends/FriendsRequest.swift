import Foundation
import SharingOperation

/// The friends of a user, page by page, until the server has no more pages.
///
/// The path has two elements, so that the lists of all users are found by the first one.
struct FriendsRequest: SimplePaginatedRequest {
  static let pathOfAll: OperationPath = ["user-friends"]

  let userID: User.ID
  let initialPageId = 1

  var path: OperationPath { Self.pathOfAll.appending(userID) }

  func pageId(
    after page: PaginatedPage<Int, [User]>, using paging: PaginatedPaging<Int, [User]>,
    in context: OperationContext
  ) -> Int? {
    page.value.count < FriendsAPI.pageSize ? nil : page.id + 1
  }

  func fetchPage(
    using paging: PaginatedPaging<Int, [User]>, in context: OperationContext
  ) async throws -> [User] {
    try await context.api.friends(of: userID, page: paging.pageId)
  }
}

extension PaginatedPages<Int, [User]> {
  /// Returns a user of the list, on whichever page.
  func user(_ id: User.ID) -> User? {
    lazy.flatMap(\.value).first { $0.id == id }
  }

  /// Returns the list in which a user has another relationship.
  func settingRelationship(of userID: User.ID, to relationship: User.Relationship) -> Self {
    map { page in
      var page = page
      for index in page.value.indices where page.value[index].id == userID {
        page.value[index].relationship = relationship
      }
      return page
    }
  }
}

/// The service of the requests. A client passes its context to every store.
extension OperationContext {
  /// The server of the requests.
  var api: FriendsAPI {
    get { self[APIKey.self] }
    set { self[APIKey.self] = newValue }
  }

  private enum APIKey: Key {
    static var defaultValue: FriendsAPI {
      preconditionFailure("Set `api` in the context of the client.")
    }
  }
}
