import LoopbackServer
import SharingOperation

/// Writes posts while there is no connection, and prints their statuses.
@MainActor
struct OfflineDemo {
  private let server: LoopbackServer
  private let network: ManualNetworkObserver
  private let store: OperationStore<CreatePost.State>
  private let screen: Screen

  /// Starts a server for the demo, and makes a client whose connection the program sets.
  static func run(on screen: Screen) async throws {
    let server = LoopbackServer(router: Router(BlogRoutes(BlogData(seed: 5))))
    try server.start()
    defer { server.stop() }
    let network = ManualNetworkObserver()
    var context = OperationContext()
    context.blog = BlogAPI(url: server.baseURL)
    let client = OperationClient(
      defaults: OperationDefaults(networkObserver: network), context: context)
    let demo = OfflineDemo(
      server: server, network: network, store: client.store(for: CreatePost().patient),
      screen: screen)
    try await demo.run()
  }

  private func run() async throws {
    network.set(.disconnected)
    screen.line("The connection is gone. Two posts are written all the same.")
    var calls: [OperationTask<Post, BlogError>] = []
    for title in ["Notes from a train", "Notes from a tunnel"] { calls.append(await write(title)) }
    screen.line("  \(heard())")
    screen.line("The connection is back. The posts go through in the order of their calls.")
    network.set(.connected)
    for call in calls {
      let post = try await call.runIfNeeded()
      screen.line("  \"\(post.title)\" is post \(post.id)")
    }
    screen.line("  \(heard())")
  }

  /// Calls the mutation, and prints the status of the call while it waits.
  private func write(_ title: String) async -> OperationTask<Post, BlogError> {
    let call = store.mutateTask(
      with: Draft(title: title, body: "There is no network here.", authorId: 1))
    Task { try await call.runIfNeeded() }
    for await history in store.changes(of: \.history) {
      guard let attempt = history[id: call.id], attempt.status.isPaused else { continue }
      screen.line("  \"\(attempt.arguments.title)\" is paused")
      break
    }
    return call
  }

  private func heard() -> String {
    let paused = store.history.count(where: \.status.isPaused)
    return
      "\(paused) calls wait; the server has been asked \(server.requestCount(for: "/posts")) times"
  }
}
