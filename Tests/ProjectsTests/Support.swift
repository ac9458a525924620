import LoopbackServer
import SharingOperation
import Synchronization

@testable import projects

/// A model on a server of the test, and its displayed lines. The test lets the responses through.
@MainActor
struct Session {
  let server: LoopbackServer
  let client: OperationClient
  let api: ProjectsAPI
  let answers: Answers
  let model: ProjectsModel
  let lines = Lines()
  private let display: Display

  /// Calls a body with a server at which Ada is signed in.
  static func run(
    _ behaviour: ServerBehaviour = ServerBehaviour(latency: .zero),
    _ body: (Session) async throws -> Void
  ) async throws {
    let server = LoopbackServer(router: Router(ProjectRoutes()), behaviour: behaviour)
    try server.start()
    defer { server.stop() }
    let answers = Answers()
    // No task may wait for a response when a test has ended.
    defer { answers.openAll() }
    var context = OperationContext()
    let api = ProjectsAPI(url: server.baseURL, answers: answers)
    context.api = api
    let client = OperationClient(defaults: .testing, clock: ManualClock(), context: context)
    try await OperationClient.withCurrent(client) {
      try await body(Session(server: server, client: client, api: api))
    }
  }

  private init(server: LoopbackServer, client: OperationClient, api: ProjectsAPI) {
    self.server = server
    self.client = client
    self.api = api
    answers = api.answers
    model = ProjectsModel()
    display = Display(of: model) { [lines] in lines.add($0) }
  }

  /// The displayed lines, one for each change of the model, without the two spaces of the program.
  var shown: [String] { lines.all.map { String($0.dropFirst(2)) } }

  /// Lets responses through, each when the change by the one before is displayed.
  func show(_ answers: String...) async throws {
    for answer in answers {
      self.answers.open(answer)
      try await display.next()
    }
  }

  /// Waits for the first lines of Ada, up to the user.
  func begin() async throws {
    try await display.next()
    try await show("GET session")
  }

  /// Changes the user, and waits until the change is displayed.
  func turn(to userID: User.ID?) async throws {
    answers.open(userID.map { "POST users/\($0)/session" } ?? "DELETE session")
    try await model.switchUser(to: userID)
    try await display.next()
  }

  func projects(
    of userID: User.ID
  ) -> OperationStore<Project.UserProjectsQuery.State> {
    client.store(for: Project.userProjectsQuery(for: userID))
  }
}

/// Lines that any thread may append to.
final class Lines: Sendable {
  private let lines = Mutex<[String]>([])

  var all: [String] { lines.withLock { $0 } }

  func add(_ line: String) { lines.withLock { $0.append(line) } }
}
