import Glibc
import LoopbackServer
import SharingOperation

/// Reads threads of comments: a custom operation type, whose state lets runs wait for each other.
@main
enum Program {
  static func main() async throws {
    // A proxy that the environment names could not reach this process.
    setenv("no_proxy", "127.0.0.1", 1)
    let server = LoopbackServer(router: Router(ThreadRoutes()), behaviour: behaviour)
    try server.start()
    defer { server.stop() }

    var context = OperationContext()
    context.serverURL = server.baseURL
    context.report = { print("   \($0)") }
    try await Story(client: OperationClient(context: context)) { print($0) }.run()
  }

  /// Each comment has its own latency, so that responses arrive in another order. One of them needs a
  /// second attempt.
  private static let behaviour = ServerBehaviour(
    latency: .milliseconds(120),
    delays: [.init("/comments/2", .milliseconds(400)), .init("/comments/5", .milliseconds(300))],
    faults: [.init("/comments/3", .first(1))])
}
