import SharingOperation

// The links of the chain, each of which needs the one before it.

extension User {
  static let currentQuery = CurrentQuery()

  /// The current user.
  struct CurrentQuery: QueryRequest, Hashable {
    func fetch(
      in context: OperationContext, with continuation: OperationContinuation<User, any Error>
    ) async throws -> User {
      try await context.api.currentUser()
    }
  }
}

extension Project {
  /// The projects of the current user. The query reads the user itself.
  static var userProjectsQuery: some QueryRequest<[Project], UserProjectsQuery.State> {
    UserProjectsQuery(user: .current)
  }

  /// The projects of a user, which are fresh for a minute.
  static func userProjectsQuery(
    for userID: User.ID
  ) -> some QueryRequest<[Project], UserProjectsQuery.State> {
    UserProjectsQuery(user: .id(userID)).stale(after: .seconds(60))
  }

  /// The key is in the path, so that each user has projects of their own, and `current` as well.
  struct UserProjectsQuery: QueryRequest, Hashable {
    let user: UserKey

    func fetch(
      in context: OperationContext, with continuation: OperationContinuation<[Project], any Error>
    ) async throws -> [Project] {
      try await context.api.projects(of: user.fetchID(in: context))
    }
  }
}

/// A user by an identifier, or the current one.
enum UserKey: Hashable, Sendable {
  case id(User.ID)
  case current

  func fetchID(in context: OperationContext) async throws -> User.ID {
    switch self {
    case .id(let id): id
    case .current: try await context.ensureCurrentUser().id
    }
  }
}

extension OpenTask {
  /// The open tasks in some projects, which are fresh for a minute.
  static func query(in projects: [Project]) -> some QueryRequest<[OpenTask], ProjectsQuery.State> {
    ProjectsQuery(projectIDs: projects.map(\.id)).stale(after: .seconds(60))
  }

  struct ProjectsQuery: QueryRequest, Hashable {
    let projectIDs: [Project.ID]

    func fetch(
      in context: OperationContext, with continuation: OperationContinuation<[OpenTask], any Error>
    ) async throws -> [OpenTask] {
      try await context.api.openTasks(in: projectIDs)
    }
  }
}

/// The whole chain as one query, which yields its partial values.
struct OverviewQuery: QueryRequest, Hashable {
  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Overview, any Error>
  ) async throws -> Overview {
    var overview = Overview(user: try await context.api.currentUser())
    continuation.yield(overview)
    let projects = try await context.api.projects(of: overview.user.id)
    overview.projects = projects
    continuation.yield(overview)
    overview.openTasks = try await context.api.openTasks(in: projects.map(\.id))
    return overview
  }
}

struct Overview: Equatable {
  let user: User
  var projects: [Project]?
  var openTasks: [OpenTask]?
}

extension OperationContext {
  /// The current user: the cached value, or a fetched one.
  func ensureCurrentUser() async throws -> User {
    guard let client = operationClient else { return try await User.currentQuery.run(in: self) }
    return try await client.ensure(User.currentQuery)
  }

  /// The server of the requests, which the program sets in the context of the client.
  var api: ProjectsAPI {
    get { self[APIKey.self] }
    set { self[APIKey.self] = newValue }
  }

  private enum APIKey: Key {
    static var defaultValue: ProjectsAPI {
      preconditionFailure("Set `api` in the context of the client.")
    }
  }
}
