import LoopbackServer
import SharingOperation
import Testing

@testable import projects

@MainActor
@Suite(.timeLimit(.minutes(5))) struct StoryTests {
  @Test(
    "The story prints the same lines, however long the responses take",
    arguments: ["/session", "/users/:id/projects", "/open-tasks", "/users/:id/session", "/none"])
  func story(slow route: String) async throws {
    let behaviour = ServerBehaviour(
      latency: .zero, delays: [.init(route, .milliseconds(30))])
    try await Session.run(behaviour) { session async throws in
      let lines = Lines()
      try await Story(model: session.model, answers: session.answers) { lines.add($0) }.run()
      #expect(lines.all.joined(separator: "\n") == Self.lines)
    }
  }

  private static let lines = """
    Ada: each link is asked for when the one before it is there.
      nobody | - | -
      Ada | - | -
      Ada | Bridge, Harbour | -

    Bo takes over, while the open tasks of Ada are on their way.
      Bo | - | -
      (those of Ada come: order steel, paint the crane)
      Bo | Tunnel | -
      Bo | Tunnel | dig, hang lamps

    Ada again: what is known is there at once.
      Ada | Bridge, Harbour | order steel, paint the crane

    Carlo: a link fails, and the one after it has nothing to follow.
      Carlo | - | -
      Carlo | - | - | error: The projects of Carlo are private.

    Nobody: there is nothing to follow at all.
      nobody | - | -

    The chain as a stream, which gives its last link.
      -
      order steel, paint the crane
      dig, hang lamps

    A query that asks for the user itself.
      Tunnel

    One query of everything, which yields its progress.
      Bo | - | -
      Bo | Tunnel | -
      Bo | Tunnel | dig, hang lamps
    """
}

@MainActor
@Suite(.timeLimit(.minutes(5))) struct OtherWaysTests {
  @Test("A chain sends the values of the last link of the model", arguments: [false, true])
  func chain(fromStore: Bool) async throws {
    try await Session.run { session async throws in
      try await session.begin()
      try await session.show("GET users/1/projects", "GET open-tasks?projects=1,2")
      let store = session.client.store(for: User.currentQuery)
      let projects =
        fromStore
        ? store.chain { Project.userProjectsQuery(for: $0.id) }
        : session.client.chain(User.currentQuery) { Project.userProjectsQuery(for: $0.id) }
      var tasks = projects.chain { OpenTask.query(in: $0) }.makeAsyncIterator()
      #expect(await tasks.next() == .some(session.model.openTasks))
      try await session.turn(to: 2)
      #expect(await tasks.next() == .some(nil))
      try await session.show("GET users/2/projects", "GET open-tasks?projects=3")
      #expect(session.model.openTasks?.count == 2)
      #expect(await tasks.next() == .some(session.model.openTasks))
      try await session.turn(to: nil)
      #expect(await tasks.next() == .some(nil))
    }
  }

  @Test("The query that reads the user itself uses the cached one")
  func inside() async throws {
    try await Session.run { session async throws in
      session.answers.openAll()
      let store = session.client.store(for: Project.userProjectsQuery)
      for await user in session.model.$user.values where user != nil { break }
      #expect(try await store.fetch().map(\.ownerId) == [1, 1])
      #expect(session.server.requestCount(for: "/session") == 1)
      try await session.model.switchUser(to: 2)
      #expect(try await store.fetch().map(\.ownerId) == [2])
      #expect(session.server.requestCount(for: "/session") == 1)
    }
  }

  @Test("The merged query displays its earlier parts when a later part fails")
  func merged() async throws {
    try await Session.run { session async throws in
      session.answers.openAll()
      try await session.model.switchUser(to: 3)
      let store = session.client.store(for: OverviewQuery())
      await #expect(throws: ProjectsError.self) { try await store.fetch() }
      #expect(store.currentValue?.user.name == "Carlo")
      #expect(store.currentValue?.projects == nil)
    }
  }
}
