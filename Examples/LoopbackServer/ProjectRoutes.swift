import Synchronization

/// Serves the signed-in user, the projects of users, and the open tasks in them.
public final class ProjectRoutes: RouteCollection, Sendable {
  /// The identifier of the signed-in user.
  private let session: Mutex<Int?>

  /// Creates the routes of three users. The first one is signed in.
  public init() {
    session = Mutex(1)
  }

  /// Registers the routes of the session, of projects and of open tasks.
  public func register(in router: inout Router) {
    router.get("/session") { _ in try self.currentUser() }
    router.post("/users/:id/session") { try self.signIn($0) }
    router.delete("/session") { _ in
      self.session.withLock { $0 = nil }
      return try .json(ProjectServer.User?.none)
    }
    router.get("/users/:id/projects") { try self.projects($0) }
    router.get("/open-tasks") { try self.openTasks($0) }
  }

  private func currentUser() throws -> Response {
    guard let id = session.withLock({ $0 }) else { throw HTTPError(401, "Nobody is signed in.") }
    return try .json(Self.user(id))
  }

  private func signIn(_ request: Request) throws -> Response {
    let user = try Self.user(request.parameter("id"))
    session.withLock { $0 = user.id }
    return try .json(user)
  }

  private func projects(_ request: Request) throws -> Response {
    let user = try Self.user(request.parameter("id"))
    guard user.id != 3 else { throw HTTPError(403, "The projects of \(user.name) are private.") }
    return try .json(Self.projects.filter { $0.ownerId == user.id })
  }

  private func openTasks(_ request: Request) throws -> Response {
    let ids = try request.query("projects", default: "").split(separator: ",").map { Int($0) }
    return try .json(Self.openTasks.filter { ids.contains($0.projectId) })
  }

  private static func user(_ id: Int) throws -> ProjectServer.User {
    guard let user = users.first(where: { $0.id == id }) else {
      throw HTTPError(404, "There is no user \(id).")
    }
    return user
  }

  private static let users: [ProjectServer.User] = [
    .init(id: 1, name: "Ada"), .init(id: 2, name: "Bo"), .init(id: 3, name: "Carlo"),
  ]

  private static let projects: [ProjectServer.Project] = [
    .init(id: 1, ownerId: 1, title: "Bridge"), .init(id: 2, ownerId: 1, title: "Harbour"),
    .init(id: 3, ownerId: 2, title: "Tunnel"),
  ]

  private static let openTasks: [ProjectServer.OpenTask] = [
    .init(id: 1, projectId: 1, title: "order steel"),
    .init(id: 2, projectId: 2, title: "paint the crane"),
    .init(id: 3, projectId: 3, title: "dig"), .init(id: 4, projectId: 3, title: "hang lamps"),
  ]
}

/// The types of the projects in the server. A client defines its own types.
public enum ProjectServer {
  /// A user that can sign in.
  public struct User: Codable, Sendable, Equatable {
    /// The identifier of the user.
    public var id: Int
    /// The first name.
    public var name: String
  }

  /// A project of a user.
  public struct Project: Codable, Sendable, Equatable {
    /// The identifier of the project.
    public var id: Int
    /// The identifier of the user.
    public var ownerId: Int
    /// The name of the project.
    public var title: String
  }

  /// An open task.
  public struct OpenTask: Codable, Sendable, Equatable {
    /// The identifier of the task.
    public var id: Int
    /// The identifier of its project.
    public var projectId: Int
    /// The description of the task.
    public var title: String
  }
}
