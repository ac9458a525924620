import LoopbackServer
import SharingOperation
import Testing

@testable import projects

@MainActor
@Suite(.timeLimit(.minutes(5))) struct ModelTests {
  private static let begun = ["nobody | - | -", "Ada | - | -"]
  private static let ofAda = "Ada | Bridge, Harbour | order steel, paint the crane"

  @Test("Each link is fetched when the one before it has a value")
  func links() async throws {
    try await Session.run { session async throws in
      try await session.begin()
      #expect(session.server.requestCount(for: "/open-tasks") == 0)
      try await session.show("GET users/1/projects", "GET open-tasks?projects=1,2")
      #expect(session.shown == Self.begun + ["Ada | Bridge, Harbour | -", Self.ofAda])
    }
  }

  @Test("A change of user changes the whole chain, and cached values are displayed at once")
  func userChange() async throws {
    try await Session.run { session async throws in
      try await session.begin()
      try await session.show("GET users/1/projects", "GET open-tasks?projects=1,2")
      try await session.turn(to: 2)
      try await session.show("GET users/2/projects", "GET open-tasks?projects=3")
      try await session.turn(to: 1)
      #expect(
        session.shown.dropFirst(3) == [
          Self.ofAda, "Bo | - | -", "Bo | Tunnel | -", "Bo | Tunnel | dig, hang lamps", Self.ofAda,
        ])
      #expect(!session.model.$projects.isLoading && !session.model.$openTasks.isLoading)
      #expect(session.server.requestCount(for: "/users/:id/projects") == 2)
      #expect(session.server.requestCount(for: "/open-tasks") == 2)
    }
  }

  @Test(
    "Projects of the user before are not displayed, however late they arrive", arguments: 0...2)
  func lateProjects(after step: Int) async throws {
    try await Session.run { session async throws in
      try await session.begin()
      // Another caller waits as well, so that the run continues.
      let store = session.projects(of: 1)
      let late = Task.immediate { try await store.fetch() }
      try await session.turn(to: 2)
      for (index, answer) in ["GET users/2/projects", "GET open-tasks?projects=3"].enumerated() {
        if index == step { try await arrive("GET users/1/projects", late, in: session) }
        try await session.show(answer)
      }
      if step == 2 { try await arrive("GET users/1/projects", late, in: session) }
      #expect(store.currentValue?.map(\.title) == ["Bridge", "Harbour"])
      #expect(
        session.shown == Self.begun + [
          "Bo | - | -", "Bo | Tunnel | -", "Bo | Tunnel | dig, hang lamps",
        ])
    }
  }

  @Test(
    "Open tasks of the user before are not displayed, however late they arrive", arguments: 0...2)
  func lateTasks(after step: Int) async throws {
    try await Session.run { session async throws in
      try await session.begin()
      try await session.show("GET users/1/projects")
      let store = session.client.store(for: OpenTask.query(in: session.model.projects ?? []))
      let late = Task.immediate { try await store.fetch() }
      try await session.turn(to: 2)
      for (index, answer) in ["GET users/2/projects", "GET open-tasks?projects=3"].enumerated() {
        if index == step { try await arrive("GET open-tasks?projects=1,2", late, in: session) }
        try await session.show(answer)
      }
      if step == 2 { try await arrive("GET open-tasks?projects=1,2", late, in: session) }
      #expect(store.currentValue?.count == 2)
      #expect(
        session.shown.dropFirst(3) == [
          "Bo | - | -", "Bo | Tunnel | -", "Bo | Tunnel | dig, hang lamps",
        ])
    }
  }

  /// Lets a late response through, and checks that the displayed line does not change.
  private func arrive<Value>(
    _ answer: String, _ late: Task<Value, any Error>, in session: Session
  ) async throws {
    session.answers.open(answer)
    _ = try await late.value
    #expect("\(session.model.screen)" == session.shown.last)
  }

  @Test("A change of user cancels the requests that only the model awaits")
  func cancels() async throws {
    try await Session.run { session async throws in
      try await session.begin()
      for await isLoading in session.model.$projects.changes(of: \.isLoading) where isLoading {
        break
      }
      try await session.turn(to: 2)
      #expect(!session.projects(of: 1).isLoading)
      #expect(session.projects(of: 1).subscriberCount == 0)
    }
  }

  @Test("A user that was requested before a change is not displayed after it")
  func lateUser() async throws {
    try await Session.run { session async throws in
      let user = session.model.$user
      let late = Task.immediate { try await user.fetch() }
      try await session.turn(to: 2)
      session.answers.open("GET session")
      await #expect(throws: CancellationError.self) { try await late.value }
      #expect(session.model.user?.name == "Bo")
    }
  }

  @Test("Of two changes, the last one applies, in whichever order the responses arrive")
  func lastChange() async throws {
    try await Session.run { session async throws in
      try await session.begin()
      let model = session.model
      let first = Task.immediate { try await model.switchUser(to: 2) }
      let second = Task.immediate { try await model.switchUser(to: 1) }
      session.answers.open("POST users/1/session")
      // Long enough for the second response to arrive, if it had been requested.
      session.answers.open("GET users/2/projects")
      for _ in 0..<5 { _ = try await session.api.projects(of: 2) }
      session.answers.open("POST users/2/session")
      _ = try await (second.value, first.value)
      #expect(model.user?.name == "Ada")
      #expect(try await model.$user.fetch().name == "Ada")
    }
  }

  @Test("A change that the server refuses changes nothing")
  func refusedChange() async throws {
    try await Session.run { session async throws in
      try await session.begin()
      session.answers.open("POST users/9/session")
      let refusal = ProjectsError(status: 404, message: "There is no user 9.")
      await #expect(throws: refusal) { try await session.model.switchUser(to: 9) }
      try await session.show("GET users/1/projects")
      #expect(session.shown == Self.begun + ["Ada | Bridge, Harbour | -"])
    }
  }

  @Test("Without a signed-in user, all later links are removed, also those in flight")
  func signOut() async throws {
    try await Session.run { session async throws in
      try await session.begin()
      try await session.show("GET users/1/projects")
      let store = session.client.store(for: OpenTask.query(in: session.model.projects ?? []))
      let late = Task.immediate { try await store.fetch() }
      try await session.turn(to: nil)
      try await arrive("GET open-tasks?projects=1,2", late, in: session)
      #expect(session.shown.last == "nobody | - | -")
      #expect(!session.model.$projects.isBacked)
      #expect(!session.model.$openTasks.isBacked)
    }
  }

  @Test("A link that fails has its error, and has a value when it is fetched again")
  func failingProjects() async throws {
    let fault = ServerBehaviour.Fault("/users/1/projects", .first(1))
    try await Session.run(.init(latency: .zero, faults: [fault])) { session async throws in
      try await session.begin()
      try await session.show("GET users/1/projects")
      let error = try #require(session.model.$projects.error)
      #expect(session.shown == Self.begun + ["Ada | - | - | error: \(error)"])
      #expect(!session.model.$openTasks.isBacked)
      session.answers.open("GET open-tasks?projects=1,2")
      try await session.model.$projects.fetch()
      for await tasks in session.model.$openTasks.values where tasks != nil { break }
      #expect("\(session.model.screen)" == Self.ofAda)
    }
  }

  @Test("The error of a link is removed with its user")
  func refusedProjects() async throws {
    try await Session.run { session async throws in
      try await session.begin()
      try await session.turn(to: 3)
      try await session.show("GET users/3/projects")
      try await session.turn(to: 2)
      #expect(
        session.shown.dropFirst(2) == [
          "Carlo | - | -", "Carlo | - | - | error: The projects of Carlo are private.",
          "Bo | - | -",
        ])
    }
  }

  @Test("Without a user there is an error, and the later links are unbacked")
  func noUser() async throws {
    try await Session.run { session async throws in
      session.answers.open("DELETE session")
      _ = try await session.api.changeUser(to: nil)
      session.client.store(for: User.currentQuery).cancel()
      let user = session.model.$user
      session.answers.open("GET session")
      await #expect(throws: ProjectsError.self) { try await user.fetch() }
      #expect("\(session.model.screen)" == "nobody | - | - | error: Nobody is signed in.")
      #expect(!session.model.$projects.isBacked)
    }
  }

  @Test("A reader on the main actor never reads the links of two users")
  func consistent() async throws {
    try await Session.run { session async throws in
      session.answers.openAll()
      let model = session.model
      let changes = Task {
        for round in 0..<60 { try await model.switchUser(to: 1 + round % 2) }
      }
      let reading = Task {
        while !Task.isCancelled {
          let screen = model.screen
          let owners = Set(screen.projects?.map(\.ownerId) ?? [])
          #expect(owners.isSubset(of: [screen.user?.id ?? 0]))
          let projects = Set(screen.projects?.map(\.id) ?? [])
          #expect(projects.isSuperset(of: screen.openTasks?.map(\.projectId) ?? []))
          await Task.yield()
        }
      }
      try await changes.value
      reading.cancel()
      await reading.value
    }
  }
}
