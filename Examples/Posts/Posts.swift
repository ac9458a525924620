import Foundation
import Glibc
import LoopbackServer
import SharingOperation

/// Reads a small blog: a tour through queries, retries, deduplication and `@SharedQuery`.
@main
@MainActor
enum Posts {
  static func main() async {
    StandardStreams.open()
    // A closed pipe is then an error of `write`, and not the end of the process.
    signal(SIGPIPE, SIG_IGN)
    exit(await run(CommandLine.arguments.dropFirst()))
  }

  /// Runs the command of the arguments, and returns the exit status.
  private static func run(_ arguments: some Sequence<String>) async -> Int32 {
    do throws(BadArguments) {
      switch try Arguments(arguments) {
      case .help:
        StandardStreams.output(Arguments.helpText + "\n")
        return EXIT_SUCCESS
      case .read(let api, let state):
        return await perform { try await read(api, state, on: $0) }
      case .offlineDemo(nil):
        return await perform(OfflineDemo.run)
      case .busy:
        return await perform(BusyBlog.run)
      case .offlineDemo(let state?):
        return await perform { try await RestartDemo.run(in: state, on: $0) }
      case .part(let part, let api, let state):
        return await perform { try await part.run(api, in: state, on: $0) }
      }
    } catch {
      StandardStreams.error("posts: \(error)\n\(Arguments.usage)\n")
      return 2
    }
  }

  /// Runs a command that prints, and returns the exit status.
  private static func perform(_ body: (Screen) async throws -> Void) async -> Int32 {
    // A proxy that the environment names could not reach a server in this process.
    setenv("no_proxy", "127.0.0.1", 1)
    let screen = Screen(.standardOutput, write: StandardStreams.output)
    do {
      try await body(screen)
      return EXIT_SUCCESS
    } catch {
      screen.clear()
      StandardStreams.error("posts: \(error)\n")
      return EXIT_FAILURE
    }
  }

  private static func read(_ api: URL?, _ state: String?, on screen: Screen) async throws {
    let storage = try state.map { try FileStorage(directory: $0) }
    let server = api == nil ? try startServer() : nil
    defer { server?.stop() }
    guard let url = api ?? server?.baseURL else { return }
    screen.line("Reading the blog at \(url)")
    var context = OperationContext()
    context.blog = BlogAPI(url: url)
    context.report = { line in Task { @MainActor in screen.note(line) } }
    // With a storage, each value is kept for a week. The queries need no change.
    let week = OperationPersistence(maxAge: .seconds(7 * 24 * 60 * 60))
    let client = OperationClient(
      defaults: OperationDefaults(persistence: week), context: context, storage: storage)
    try await tour(client, server, on: screen)
    try await client.flush()
  }

  private static func tour(
    _ client: OperationClient, _ server: LoopbackServer?, on screen: Screen
  ) async throws {
    // A request can run without a store, and modifiers apply to it as well. This one ends the
    // program after a while, however slow a server is.
    let tour = Query(path: ["tour"]) { _ in
      try await OperationClient.withCurrent(client) {
        try await Tour.begin(on: screen, requestCount: server?.requestCount)
      }
    }
    try await tour.timeout(after: .seconds(8)).run()
  }

  /// Starts a slow and unreliable server in this process.
  private static func startServer() throws -> LoopbackServer {
    let behaviour = ServerBehaviour(
      latency: .milliseconds(200),
      faults: [.init("/posts", .first(2)), .init("/authors/:id", .every(2), status: 500)])
    // With this seed, the second and the third post are by one author.
    let routes = BlogRoutes(BlogData(seed: 5))
    let server = LoopbackServer(router: Router(routes), behaviour: behaviour)
    try server.start()
    return server
  }
}
