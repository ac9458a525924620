import Observation

/// The displayed values of the links, as one line.
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

/// Prints what a model displays, whenever that changes.
@MainActor
final class Display {
  private let model: ProjectsModel
  private let write: @Sendable (String) -> Void
  private var shown: Screen?

  init(of model: ProjectsModel, write: @escaping @Sendable (String) -> Void) {
    self.model = model
    self.write = write
  }

  /// Waits until the displayed line differs from the last one, and prints it.
  func next() async throws {
    while true {
      let (changes, continuation) = AsyncStream.makeStream(of: Void.self)
      withObservationTracking {
        _ = model.screen
      } onChange: {
        continuation.finish()
      }
      // Read again: the tracking begins when its closure has returned, and a change of another
      // thread before that is not notified.
      let screen = model.screen
      if screen != shown {
        shown = screen
        return write("  \(screen)")
      }
      for await _ in changes {}
      try Task.checkCancellation()
    }
  }
}
