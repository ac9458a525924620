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

  /// Does what the arguments ask for, and returns the exit status.
  private static func run(_ arguments: some Sequence<String>) async -> Int32 {
    do throws(BadArguments) {
      switch try Arguments(arguments) {
      case .help:
        StandardStreams.output(Arguments.helpText + "\n")
        return EXIT_SUCCESS
      case .read(let api):
        return await read(api)
      }
    } catch {
      StandardStreams.error("posts: \(error)\n\(Arguments.usage)\n")
      return 2
    }
  }

  private static func read(_ api: URL?) async -> Int32 {
    let screen = Screen(.standardOutput, write: StandardStreams.output)
    do {
      let server = api == nil ? try startServer() : nil
      defer { server?.stop() }
      guard let url = api ?? server?.baseURL else { return EXIT_FAILURE }
      screen.line("Reading the blog at \(url)")
      try await tour(url, server, on: screen)
      return EXIT_SUCCESS
    } catch {
      screen.clear()
      StandardStreams.error("posts: \(error)\n")
      return EXIT_FAILURE
    }
  }

  private static func tour(_ url: URL, _ server: LoopbackServer?, on screen: Screen) async throws {
    var context = OperationContext()
    context.blog = BlogAPI(url: url)
    context.report = { line in Task { @MainActor in screen.note(line) } }
    let client = OperationClient(context: context)
    // A request need not be kept in a store to be run, and modifiers apply to it all the same. This
    // one makes sure that the program ends, however slow a server is.
    let tour = Query(path: ["tour"]) { _ in
      try await OperationClient.withCurrent(client) {
        try await Tour.begin(on: screen, requestCount: server?.requestCount)
      }
    }
    try await tour.timeout(after: .seconds(8)).run()
  }

  /// Starts a server in this process that is a bit slow and fails now and then.
  private static func startServer() throws -> LoopbackServer {
    // A proxy that the environment names could not reach this process.
    setenv("no_proxy", "127.0.0.1", 1)
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
