import Observation

/// What there is to see of the links, as one line.
struct Screen: Equatable, CustomStringConvertible {
  var user: User?
  var projects: [Project]?
  var openTasks: [OpenTask]?
  var errors: [String] = []

  var description: String {
    let links = [
      user?.name ?? "nobody",
      projects?.map(\.title).joined(separator: ", ") ?? "-",
      openTasks?.map(\.title).joined(separator: ", ") ?? "-",
    ]
    return (links + errors.map { "error: \($0)" }).joined(separator: " | ")
  }
}

/// Tells what a model shows, whenever that changes.
@MainActor
final class Display {
  private let model: ProjectsModel
  private let tell: @Sendable (String) -> Void
  private var shown: Screen?

  init(of model: ProjectsModel, tell: @escaping @Sendable (String) -> Void) {
    self.model = model
    self.tell = tell
  }

  /// Waits until the model shows something else than what was told last, and tells it.
  func next() async throws {
    while true {
      let (changes, continuation) = AsyncStream.makeStream(of: Void.self)
      withObservationTracking {
        _ = model.screen
      } onChange: {
        continuation.finish()
      }
      // Read again: the tracking begins when its closure has returned, and what another thread
      // changes before that is not told.
      let screen = model.screen
      if screen != shown {
        shown = screen
        return tell("  \(screen)")
      }
      for await _ in changes {}
      try Task.checkCancellation()
    }
  }
}
