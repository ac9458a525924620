import Foundation
import SharingOperation
import Synchronization
import Testing

// The article on dependent queries: one query for the user and the projects.

private struct User: Sendable {
  let id: UUID
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
      let user = try await self.fetchCurrentUser()
      return try await self.fetchProjects(for: user.id)
    }

    private func fetchCurrentUser() async throws -> User {
      try await Backend.current.respond(to: "current user")
      return User(id: UUID())
    }

    private func fetchProjects(for userId: UUID) async throws -> [Project] {
      try await Backend.current.respond(to: "projects")
      return [Project(id: UUID(), userId: userId)]
    }
  }
}

/// The query that yields an empty value when it has fetched the user.
private struct AnnouncingQuery: QueryRequest, Hashable {
  func fetch(
    in context: QueryContext,
    with continuation: QueryContinuation<[Project]>
  ) async throws -> [Project] {
    try await Backend.current.respond(to: "current user")
    let user = User(id: UUID())
    continuation.yield([])
    try await Backend.current.respond(to: "projects")
    return [Project(id: UUID(), userId: user.id)]
  }
}

@Suite struct DependentMergedTests {
  @Test("One query fetches both, each time")
  func merged() async throws {
    try await withBackend { backend, client async throws in
      let store = client.store(for: Project.userProjectsQuery)
      #expect(try await store.fetch().count == 1)
      try await store.fetch()
      #expect(backend.calls == ["current user", "projects", "current user", "projects"])
    }
  }

  @Test("The value that is yielded after the user is displayed before the projects are fetched")
  func progress() async throws {
    try await withBackend { backend, client async throws in
      backend.hold("projects")
      let store = client.store(for: AnnouncingQuery())
      let run = Task { try await store.fetch() }
      await backend.calls(atLeast: 2)
      #expect(store.currentValue?.isEmpty == true)
      #expect(store.isLoading)
      backend.release("projects")
      #expect(try await run.value.count == 1)
      #expect(store.currentValue?.count == 1)
    }
  }
}
