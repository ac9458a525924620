import Observation
import SharingOperation

/// The user who is signed in, the projects of that user, and what is to be done in them.
///
/// The wrappers do their own tracking, property by property, so the macro is to leave them alone.
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

  /// One change after the other, so that the user who was asked for last is the one who stays.
  @ObservationIgnored
  @SharedQuery(ChangeUser().serialized(in: "session")) var latestChange

  init() {
    _projects = SharedQuery(dependingOn: $user) { Project.userProjectsQuery(for: $0.id) }
    _openTasks = SharedQuery(dependingOn: $projects) { OpenTask.query(in: $0) }
  }

  /// Signs somebody in, and the whole chain turns; `nil` signs out.
  func switchUser(to userID: User.ID?) async throws {
    try await $latestChange.mutate(with: userID)
  }

  /// Who reads this in `withObservationTracking` is told when any of the links changes.
  var screen: Screen {
    var screen = Screen(user: user, projects: projects, openTasks: openTasks)
    screen.errors = [$user.error, $projects.error, $openTasks.error].compactMap { $0 }
      .map { "\($0)" }
    return screen
  }
}
