import Foundation
import Observation
import SharingOperation
import Synchronization
import Testing

// The article on dependent queries: a query that is constructed when the value that it needs has
// been fetched.

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
  static func userProjectsQuery(
    for userId: UUID
  ) -> some QueryRequest<[Self], UserProjectsQuery.State> {
    UserProjectsQuery(userId: userId)
  }

  struct UserProjectsQuery: QueryRequest {
    let userId: UUID

    var path: QueryPath {
      ["user-projects", self.userId]
    }

    func fetch(
      in context: QueryContext,
      with continuation: QueryContinuation<[Project]>
    ) async throws -> [Project] {
      try await Backend.current.respond(to: "projects")
      return [Project(id: UUID(), userId: userId)]
    }
  }
}

@MainActor
@Observable
private final class UserProjectsModel {
  @ObservationIgnored
  @SharedQuery(User.currentQuery) var user

  @ObservationIgnored
  @SharedQuery<Project.UserProjectsQuery.State> var projects

  func appeared() async throws {
    let user = try await $user.fetch()
    self._projects = SharedQuery(wrappedValue: nil, Project.userProjectsQuery(for: user.id))
  }
}

@MainActor
@Suite struct DependentDelayedTests {
  @Test("The projects are fetched once the model has appeared, at the path of their user")
  func projects() async throws {
    try await withBackend { backend, client async throws in
      // The wrapper starts an automatic run. The fetch joins it while it is in flight.
      backend.hold("current user")
      let model = UserProjectsModel()
      #expect(model.projects == nil)
      #expect(!model.$projects.isBacked)
      await #expect(throws: SharedQueryError.self) { try await model.$projects.fetch() }
      let appearing = Task.immediate { try await model.appeared() }
      backend.release("current user")
      try await appearing.value
      let user = try #require(model.user)
      for await projects in model.$projects.values where projects != nil { break }
      #expect(model.projects?.map(\.userId) == [user.id])
      #expect(
        client.stores(matching: ["user-projects"]).map(\.path) == [["user-projects", user.id]])
      #expect(backend.calls == ["current user", "projects"])
    }
  }

  @Test("A reader of the projects without a query is notified when they have one")
  func tracking() async throws {
    try await withBackend { _, _ async throws in
      let model = UserProjectsModel()
      let isNotified = Mutex(false)
      withObservationTracking {
        #expect(model.projects == nil)
      } onChange: {
        isNotified.withLock { $0 = true }
      }
      try await model.appeared()
      for await projects in model.$projects.values where projects != nil { break }
      #expect(isNotified.withLock { $0 })
    }
  }
}
