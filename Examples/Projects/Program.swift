import Glibc
import LoopbackServer
import SharingOperation

/// Follows users, their projects and the open tasks in them: queries that depend on each other.
@main
enum Program {
  static func main() async throws {
    // A proxy that the environment names could not reach this process.
    setenv("no_proxy", "127.0.0.1", 1)
    let server = LoopbackServer(router: Router(ProjectRoutes()))
    try server.start()
    defer { server.stop() }

    let answers = Answers()
    var context = OperationContext()
    context.api = ProjectsAPI(url: server.baseURL, answers: answers)
    // The refusals of this server are permanent, so there are no retries.
    let defaults = OperationDefaults(retryLimit: 0)
    let client = OperationClient(defaults: defaults, context: context)
    try await OperationClient.withCurrent(client) {
      try await Story(model: ProjectsModel(), answers: answers) { print($0) }.run()
    }
  }
}
