import FoundationEssentials
import Observation
import SharingOperation
import Synchronization
import Testing

struct User: Sendable, Equatable { let id: Int }

struct UserQuery: QueryRequest, Hashable {
  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<User, any Error>
  ) async throws -> User { User(id: 1) }
}

struct ProjectsQuery: QueryRequest, Hashable {
  let userID: Int

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<[String], any Error>
  ) async throws -> [String] { ["a\(userID)", "b"] }
}

func projects(for id: Int) -> some QueryRequest<[String], ProjectsQuery.State> {
  ProjectsQuery(userID: id)
}

@MainActor
@Observable
final class Model {
  @ObservationIgnored @SharedQuery(UserQuery()) var user
  @ObservationIgnored @SharedQuery<ProjectsQuery.State> var projects
  @ObservationIgnored @SharedQuery(ProjectsQuery(userID: 4), default: []) var others

  func appeared() async throws {
    let user = try await $user.fetch()
    _projects = SharedQuery(wrappedValue: nil, SharingOperationTests.projects(for: user.id))
  }
}

@Suite struct SharedQueryTests {
  @Test("delayed construction") @MainActor func delayed() async throws {
    try await OperationClient.withCurrent(OperationClient(defaults: .testing)) {
      let model = Model()
      #expect(model.projects == nil)
      #expect(!model.$projects.isBacked)
      let told = Atomic(0)
      withObservationTracking {
        _ = model.projects
      } onChange: {
        told.wrappingAdd(1, ordering: .relaxed)
      }
      try await model.appeared()
      #expect(told.load(ordering: .relaxed) == 1)
      try await model.$projects.fetch()
      #expect(model.projects == ["a1", "b"])
      try await model.$others.fetch()
      #expect(model.others == ["a4", "b"])
      #expect(model.$others.store === OperationClient.shared.store(for: ProjectsQuery(userID: 4)))
      let dependent = SharedQuery(dependingOn: model.$user) { ProjectsQuery(userID: $0.id) }
      #expect(dependent.store === model.$projects.store)
      #expect(dependent.status.isSuccess)
    }
  }
}
