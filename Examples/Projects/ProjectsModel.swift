import Observation
import SharingOperation

/// The current user, the projects of that user, and the open tasks in them.
///
/// The wrappers notify observers themselves, so the macro has to ignore them.
@MainActor
@Observable
final class ProjectsModel {
  @ObservationIgnored
  @SharedQuery(User.currentQuery) var user

  /// They follow the user.
  @ObservationIgnored
  @SharedQuery<Project.UserProjectsQuery.State> var projects

  /// They follow the projects.
  @ObservationIgnored
  @SharedQuery<OpenTask.ProjectsQuery.State> var openTasks

  /// Runs one change after the other, so that the last one applies.
  @ObservationIgnored
  @SharedQuery(ChangeUser().serialized(in: "session")) var latestChange

  init() {
    _projects = SharedQuery(dependingOn: $user) { Project.userProjectsQuery(for: $0.id) }
    _openTasks = SharedQuery(dependingOn: $projects) { OpenTask.query(in: $0) }
  }

  /// Signs a user in, which changes the whole chain; `nil` signs out.
  func switchUser(to userID: User.ID?) async throws {
    try await $latestChange.mutate(with: userID)
  }

  /// A reader in `withObservationTracking` is notified when any of the links changes.
  var screen: Screen {
    var screen = Screen(user: user, projects: projects, openTasks: openTasks)
    screen.errors = [$user.error, $projects.error, $openTasks.error].compactMap { $0 }
      .map { "\($0)" }
    return screen
  }
}
