// swift-format-ignore-file: UseLetInEveryBoundCaseVariable
import Foundation
import SharingOperation
import Testing

// The article on dependent queries: direct invocation that keeps the whole path.

private struct User: Sendable {
  let id: UUID
}

extension User {
  static let currentQuery = CurrentQuery()

  struct CurrentQuery: QueryRequest {
    var path: QueryPath {
      ["current-user"]
    }

    func fetch(
      in context: QueryContext,
      with continuation: QueryContinuation<User>
    ) async throws -> User {
      try await Backend.current.respond(to: "current user")
      return User(id: UUID())
    }
  }
}

extension QueryContext {
  fileprivate func ensureCurrentUser() async throws -> User {
    guard let client = queryClient else { throw NoClientError() }
    let store = client.store(for: User.currentQuery)
    if let user = store.currentValue {
      return user
    } else {
      return try await store.fetch()
    }
  }

  private struct NoClientError: Error {}
}

private enum UserProjectsKey: Hashable, Sendable {
  case userId(UUID)
  case currentUser

  func fetchUserId(in context: QueryContext) async throws -> UUID {
    switch self {
    case let .userId(id):
      return id
    case .currentUser:
      return try await context.ensureCurrentUser().id
    }
  }
}

private struct Project: Sendable {
  let id: UUID
  let userId: UUID
}

extension Project {
  static let userProjectsQuery = UserProjectsQuery(key: .currentUser)

  static func userProjectsQuery(
    for id: UUID
  ) -> some QueryRequest<[Project], UserProjectsQuery.State> {
    UserProjectsQuery(key: .userId(id))
  }

  struct UserProjectsQuery: QueryRequest {
    let key: UserProjectsKey

    var path: QueryPath {
      ["user-projects", self.key]
    }

    func fetch(
      in context: QueryContext,
      with continuation: QueryContinuation<[Project]>
    ) async throws -> [Project] {
      let id = try await self.key.fetchUserId(in: context)
      return try await self.fetchProjects(for: id)
    }

    private func fetchProjects(for userId: UUID) async throws -> [Project] {
      try await Backend.current.respond(to: "projects")
      return [Project(id: UUID(), userId: userId)]
    }
  }
}

@Suite struct DependentByKeyTests {
  @Test("The projects of the current user and those of a user by id are two queries")
  func keys() async throws {
    try await withBackend { backend, client async throws in
      let id = UUID()
      let byID = client.store(for: Project.userProjectsQuery(for: id))
      #expect(try await byID.fetch().map(\.userId) == [id])
      #expect(backend.calls == ["projects"])
      let current = client.store(for: Project.userProjectsQuery)
      let projects = try await current.fetch()
      let user = try #require(client.store(for: User.currentQuery).currentValue)
      #expect(projects.map(\.userId) == [user.id])
      #expect(backend.calls == ["projects", "current user", "projects"])
      let paths = client.stores(matching: ["user-projects"]).map(\.path)
      #expect(
        Set(paths) == [
          ["user-projects", UserProjectsKey.userId(id)],
          ["user-projects", UserProjectsKey.currentUser],
        ])
    }
  }
}
