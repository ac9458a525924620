import SharingOperation

/// Signs users in and out, and prints how projects and open tasks follow.
@MainActor
struct Story {
  let model: ProjectsModel
  let answers: Answers
  let write: @Sendable (String) -> Void
  private let display: Display
  private let client = OperationClient.shared

  init(model: ProjectsModel, answers: Answers, write: @escaping @Sendable (String) -> Void) {
    self.model = model
    self.answers = answers
    self.write = write
    display = Display(of: model, write: write)
  }

  func run() async throws {
    try await load()
    try await takeOver()
    try await turnFurther()
    try await followStream()
    try await askInside()
    try await merge()
  }

  private func load() async throws {
    write("Ada: each link is asked for when the one before it is there.")
    try await display.next()
    for answer in ["GET session", "GET users/1/projects"] { try await show(answer) }
  }

  private func takeOver() async throws {
    write("")
    write("Bo takes over, while the open tasks of Ada are on their way.")
    // Another caller waits for them as well. Without it, the run would be cancelled.
    let store = client.store(for: OpenTask.query(in: model.projects ?? []))
    let late = Task.immediate { try await store.fetch() }
    try await turn(to: 2, after: "POST users/2/session")
    answers.open("GET open-tasks?projects=1,2")
    write("  (those of Ada come: \(try await late.value.map(\.title).joined(separator: ", ")))")
    for answer in ["GET users/2/projects", "GET open-tasks?projects=3"] { try await show(answer) }
  }

  private func turnFurther() async throws {
    write("")
    write("Ada again: what is known is there at once.")
    try await turn(to: 1, after: "POST users/1/session")
    write("")
    write("Carlo: a link fails, and the one after it has nothing to follow.")
    try await turn(to: 3, after: "POST users/3/session")
    try await show("GET users/3/projects")
    write("")
    write("Nobody: there is nothing to follow at all.")
    try await turn(to: nil, after: "DELETE session")
  }

  /// Lets a response through, and prints its change.
  private func show(_ answer: String) async throws {
    answers.open(answer)
    try await display.next()
  }

  private func turn(to userID: User.ID?, after answer: String) async throws {
    answers.open(answer)
    try await model.switchUser(to: userID)
    try await display.next()
  }
}

/// The same, written in other ways.
extension Story {
  private func followStream() async throws {
    write("")
    write("The chain as a stream, which gives its last link.")
    let openTasks = client.chain(User.currentQuery) { Project.userProjectsQuery(for: $0.id) }
      .chain { OpenTask.query(in: $0) }
    var users = [1, 2][...]
    for await tasks in openTasks {
      write("  \(tasks?.map(\.title).joined(separator: ", ") ?? "-")")
      guard let user = users.popFirst() else { return }
      try await model.switchUser(to: user)
    }
  }

  private func askInside() async throws {
    write("")
    write("A query that asks for the user itself.")
    let projects = try await client.store(for: Project.userProjectsQuery).fetch()
    write("  \(projects.map(\.title).joined(separator: ", "))")
  }

  private func merge() async throws {
    write("")
    write("One query of everything, which yields its progress.")
    answers.openAll()
    for await event in client.store(for: OverviewQuery()).events {
      switch event {
      case .yielded(let overview, _):
        write("  \(try overview.get().screen)")
      case .runEnded(let overview, _):
        return write("  \(try overview.get().screen)")
      case .stateChanged, .runStarted:
        continue
      }
    }
  }
}

extension Overview {
  fileprivate var screen: Screen { Screen(user: user, projects: projects, openTasks: openTasks) }
}
