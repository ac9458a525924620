import Foundation
import LoopbackServer
import SharingOperation

/// Writes posts in a program that is killed before it has a connection, and delivers them in the
/// next one.
@MainActor
struct RestartDemo {
  private let blog = BlogRoutes(BlogData(seed: 5))
  private let server: LoopbackServer
  private let directory: String
  private let screen: Screen

  /// Starts a server for the demo, and then the two programs, which have one directory.
  static func run(in directory: String, on screen: Screen) async throws {
    let demo = RestartDemo(in: directory, on: screen)
    try demo.server.start()
    defer { demo.server.stop() }
    try await demo.run()
  }

  private init(in directory: String, on screen: Screen) {
    server = LoopbackServer(router: Router(blog))
    self.directory = directory
    self.screen = screen
  }

  private func run() async throws {
    screen.line("A program without a connection writes two posts.")
    let writer = try start(.write)
    var lineCount = 0
    for await line in writer.lines.prefix(Part.titles.count) {
      screen.line("  \(line)")
      lineCount += 1
    }
    writer.kill()
    guard lineCount == Part.titles.count else { throw Failure.partFailed(.write) }
    screen.line("It was killed. The next program has a connection.")
    let sender = try start(.send)
    for await line in sender.lines { screen.line("  \(line)") }
    guard sender.end() else { throw Failure.partFailed(.send) }
    screen.line("The server was asked \(server.requestCount(for: "/posts")) times.")
    for delivery in blog.deliveries {
      let (post, count) = (delivery.post, delivery.count)
      screen.line("  \"\(post.title)\" is post \(post.id), and arrived \(times(count))")
    }
  }

  private func start(_ part: Part) throws -> ChildProgram {
    try ChildProgram(["--part", part.rawValue, server.baseURL.absoluteString, directory])
  }

  private func times(_ count: Int) -> String { count == 1 ? "once" : "\(count) times" }

  /// An error of a part that ended too early, which has printed the reason.
  enum Failure: Error, CustomStringConvertible {
    case partFailed(Part)

    var description: String {
      switch self {
      case .partFailed(let part): "the program that was to \(part.rawValue) has failed"
      }
    }
  }
}

extension RestartDemo {
  /// A program of the demo.
  enum Part: String {
    case write
    case send

    static let titles = ["Notes from a train", "Notes from a tunnel"]

    /// Runs the part of the program, with the outbox in a directory.
    @MainActor
    func run(_ api: URL, in directory: String, on screen: Screen) async throws {
      var context = OperationContext()
      context.blog = BlogAPI(url: api)
      let network = ManualNetworkObserver(self == .write ? .disconnected : .connected)
      let client = OperationClient(
        defaults: OperationDefaults(networkObserver: network), context: context,
        storage: try FileStorage(directory: directory))
      switch self {
      case .write: try await Self.write(with: client, on: screen)
      case .send: try await Self.send(with: client, on: screen)
      }
    }

    /// Calls the mutation for each post, and waits until the demo kills the program.
    @MainActor
    private static func write(with client: OperationClient, on screen: Screen) async throws {
      let store = client.store(for: CreatePost().patient)
      for (index, title) in titles.enumerated() {
        let call = store.mutateTask(
          with: Draft(title: title, body: "There is no network here.", authorId: 1))
        Task { try await call.runIfNeeded() }
        for await calls in client.outbox.values where calls.count > index { break }
        // A call is listed before it is on the disk.
        try await client.flush()
        screen.line("\"\(title)\" is in the outbox")
      }
      try await Task.sleep(for: .seconds(10))
    }

    /// Resumes the calls of the other program.
    @MainActor
    private static func send(with client: OperationClient, on screen: Screen) async throws {
      let calls = try await client.resumeMutations { outbox in
        outbox.register(CreatePost().patient)
      }
      screen.line("\(calls.count) calls are made again")
      for await calls in client.outbox.values {
        if !calls.contains(where: { $0.status == .running }) { break }
      }
      try await client.flush()
      screen.line("\(client.outbox.calls.count) calls are left")
    }
  }
}
