import Glibc
import LoopbackServer
import SharingOperation

/// Reads lists of friends: pages, and a change that is displayed before the server has answered.
@main
enum Program {
  static func main() async throws {
    // A proxy that the environment names could not reach this process.
    setenv("no_proxy", "127.0.0.1", 1)
    let server = LoopbackServer(
      router: Router(FriendRoutes()),
      behaviour: ServerBehaviour(
        latency: .milliseconds(60),
        delays: [.init("/users/:id/friend-requests", .milliseconds(400))]))
    try server.start()
    defer { server.stop() }

    var context = OperationContext()
    context.api = FriendsAPI(url: server.baseURL)
    let client = OperationClient(context: context)
    try await OperationClient.withCurrent(client) {
      try await Story(model: FriendsModel()) { print($0) }.run()
    }
  }
}
