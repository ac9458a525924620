import Foundation
import Observation
import SharingOperation
import Testing

/// The listings of "Dependent Queries" (seed 003), as they are written there, with bodies. Each
/// strategy has a namespace of its own, because they give one thing the same name.
struct User: Sendable {
  let id: UUID
  let name: String
}

/// The server that the elided bodies talk to: whose turn it is, and who was asked for.
final class ProjectServer: Sendable {
  static let ann = User(id: UUID(), name: "ann")
  let userRequests = Counter()
  let projectRequests = Log<UUID>()

  @TaskLocal static var current = ProjectServer()

  func currentUser() -> User {
    userRequests.increment()
    return Self.ann
  }

  func projectIDs(for userId: UUID) -> [UUID] {
    projectRequests.append(userId)
    return [userId]
  }
}

extension User {
  static let currentQuery = CurrentQuery()

  struct CurrentQuery: QueryRequest, Hashable {
    func fetch(
      in context: QueryContext,
      with continuation: QueryContinuation<User>
    ) async throws -> User {
      ProjectServer.current.currentUser()
    }
  }
}

extension QueryContext {
  func ensureCurrentUser() async throws -> User {
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

enum DirectInvocation {
  struct Project: Sendable {
    let id: UUID
  }
}

extension DirectInvocation.Project {
  typealias Project = DirectInvocation.Project

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
      ProjectServer.current.projectIDs(for: userId).map(Project.init)
    }
  }
}

enum DirectInvocationWithHelper {
  struct Project: Sendable {
    let id: UUID
  }
}

extension DirectInvocationWithHelper.Project {
  typealias Project = DirectInvocationWithHelper.Project

  static let userProjectsQuery = UserProjectsQuery()

  struct UserProjectsQuery: QueryRequest {
    var path: QueryPath {
      ["user-projects"]
    }

    func fetch(
      in context: QueryContext,
      with continuation: QueryContinuation<[Project]>
    ) async throws -> [Project] {
      let user = try await context.ensureCurrentUser()
      return try await self.fetchProjects(for: user.id)
    }

    private func fetchProjects(for userId: UUID) async throws -> [Project] {
      ProjectServer.current.projectIDs(for: userId).map(Project.init)
    }
  }
}

struct Project: Sendable {
  let id: UUID
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
      ProjectServer.current.projectIDs(for: userId).map(Project.init)
    }
  }
}

@MainActor
@Observable
final class UserProjectsModel {
  @ObservationIgnored
  @SharedQuery(User.currentQuery) var user

  @ObservationIgnored
  @SharedQuery<Project.UserProjectsQuery.State> var projects

  // The listing forgets that `fetch` throws.
  func appeared() async throws {
    let user = try await $user.fetch()
    self._projects = SharedQuery(wrappedValue: nil, Project.userProjectsQuery(for: user.id))
  }
}

enum QueryMerging {
  struct Project: Sendable {
    let id: UUID
  }
}

extension QueryMerging.Project {
  typealias Project = QueryMerging.Project

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
      ProjectServer.current.currentUser()
    }

    private func fetchProjects(for userId: UUID) async throws -> [Project] {
      ProjectServer.current.projectIDs(for: userId).map(Project.init)
    }
  }
}

enum UserProjectsKey: Hashable, Sendable {
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

enum AdvancedKey {
  struct Project: Sendable {
    let id: UUID
  }
}

extension AdvancedKey.Project {
  typealias Project = AdvancedKey.Project

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
      ProjectServer.current.projectIDs(for: userId).map(Project.init)
    }
  }
}

@Suite struct DependentQueries {
  let client = OperationClient.quiet()
  let server = ProjectServer()

  @Test("Direct invocation fetches the user where there is none, and takes the one that is there")
  func directInvocation() async throws {
    try await ProjectServer.$current.withValue(server) {
      let store = client.store(for: DirectInvocation.Project.userProjectsQuery)
      #expect(try await store.fetch().map(\.id) == [ProjectServer.ann.id])
      #expect(client.store(for: User.currentQuery).currentValue?.name == "ann")
      try await store.fetch()
      #expect(server.userRequests.count == 1)
      #expect(server.projectRequests.elements.count == 2)
      let other = User(id: UUID(), name: "bob")
      client.store(for: User.currentQuery).currentValue = other
      #expect(try await store.fetch().map(\.id) == [other.id])
    }
  }

  @Test("Without a client, direct invocation gives nothing, and its helper throws")
  func noClient() async throws {
    #expect(try await DirectInvocation.Project.userProjectsQuery.run().isEmpty)
    await #expect(throws: (any Error).self) {
      try await DirectInvocationWithHelper.Project.userProjectsQuery.run()
    }
  }

  @Test("The helper ensures the current user: it fetches once, and then takes what is there")
  func helper() async throws {
    try await ProjectServer.$current.withValue(server) {
      let store = client.store(for: DirectInvocationWithHelper.Project.userProjectsQuery)
      try await store.fetch()
      #expect(try await store.fetch().map(\.id) == [ProjectServer.ann.id])
      #expect(server.userRequests.count == 1)
    }
  }

  @Test("Delayed construction has the user in the path, and tells who read the empty wrapper")
  @MainActor
  func delayedConstruction() async throws {
    try await ProjectServer.$current.withValue(server) {
      try await OperationClient.withCurrent(client) {
        let model = UserProjectsModel()
        #expect(model.projects == nil)
        #expect(!model.$projects.isBacked)
        let told = track { _ = model.projects }
        try await model.appeared()
        #expect(told.count == 1)
        #expect(model.user?.name == "ann")
        #expect(model.$projects.store?.path == ["user-projects", ProjectServer.ann.id])
        try await model.$projects.fetch()
        #expect(model.projects?.map(\.id) == [ProjectServer.ann.id])
        let bob = client.store(for: Project.userProjectsQuery(for: UUID()))
        #expect(bob !== model.$projects.store)
      }
    }
  }

  @Test("Merged queries are one, which fetches the user each time")
  func merging() async throws {
    try await ProjectServer.$current.withValue(server) {
      let store = client.store(for: QueryMerging.Project.userProjectsQuery)
      try await store.fetch()
      #expect(try await store.fetch().map(\.id) == [ProjectServer.ann.id])
      #expect(server.userRequests.count == 2)
      #expect(store.path == ["user-projects"])
    }
  }

  @Test("An advanced key tells users apart in the path, and the current one from all of them")
  func advancedKey() async throws {
    try await ProjectServer.$current.withValue(server) {
      let other = UUID()
      let current = client.store(for: AdvancedKey.Project.userProjectsQuery)
      let bob = client.store(for: AdvancedKey.Project.userProjectsQuery(for: other))
      #expect(current.path == ["user-projects", UserProjectsKey.currentUser])
      #expect(bob.path == ["user-projects", UserProjectsKey.userId(other)])
      try await bob.fetch()
      #expect(server.userRequests.count == 0)
      try await current.fetch()
      #expect(current.currentValue?.map(\.id) == [ProjectServer.ann.id])
      #expect(server.userRequests.count == 1)
      #expect(bob.currentValue?.map(\.id) == [other])
    }
  }
}
