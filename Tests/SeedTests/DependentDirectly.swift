import Foundation
import SharingOperation
import Testing

// The article on dependent queries: direct invocation, and a helper for it.

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

private struct Project: Sendable {
  let id: UUID
  let userId: UUID
}

extension Project {
  static let userProjectsQuery = UserProjectsQuery()

  struct UserProjectsQuery: QueryRequest {
    var path: QueryPath {
      ["user-projects"]
    }

    func fetch(
      in context: QueryContext,
      with continuation: QueryContinuation<[Project]>
    ) async throws -> [Project] {
      guard let client = context.queryClient else { return [] }
      let store = client.store(for: User.currentQuery)
      var user: User
      if let u = store.currentValue {
        user = u
      } else {
        user = try await store.fetch()
      }
      return try await self.fetchProjects(for: user.id)
    }

    private func fetchProjects(for userId: UUID) async throws -> [Project] {
      try await Backend.current.respond(to: "projects")
      return [Project(id: UUID(), userId: userId)]
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

/// The query of the article that calls the helper.
private enum WithHelper {
  struct UserProjectsQuery: QueryRequest {
    var path: QueryPath {
      ["user-projects-with-helper"]
    }

    func fetch(
      in context: QueryContext,
      with continuation: QueryContinuation<[Project]>
    ) async throws -> [Project] {
      let user = try await context.ensureCurrentUser()
      return try await self.fetchProjects(for: user.id)
    }

    private func fetchProjects(for userId: UUID) async throws -> [Project] {
      try await Backend.current.respond(to: "projects")
      return [Project(id: UUID(), userId: userId)]
    }
  }
}

@Suite struct DependentDirectlyTests {
  @Test("The projects fetch the user when it is not cached, and use the cached one")
  func inline() async throws {
    try await withBackend { backend, client async throws in
      let store = client.store(for: Project.userProjectsQuery)
      let projects = try await store.fetch()
      let user = try #require(client.store(for: User.currentQuery).currentValue)
      #expect(projects.map(\.userId) == [user.id])
      try await store.fetch()
      #expect(backend.calls == ["current user", "projects", "projects"])
    }
  }

  @Test("The helper does the same for any query")
  func helper() async throws {
    try await withBackend { backend, client async throws in
      try await client.store(for: Project.userProjectsQuery).fetch()
      let projects = try await client.store(for: WithHelper.UserProjectsQuery()).fetch()
      let user = try #require(client.store(for: User.currentQuery).currentValue)
      #expect(projects.map(\.userId) == [user.id])
      #expect(backend.calls == ["current user", "projects", "projects"])
    }
  }

  @Test("Without a client there is no user: no projects, and an error from the helper")
  func withoutClient() async throws {
    try await withBackend { backend, _ async throws in
      #expect(try await Project.userProjectsQuery.run().isEmpty)
      await #expect(throws: (any Error).self) { try await WithHelper.UserProjectsQuery().run() }
      #expect(backend.calls.isEmpty)
    }
  }
}
