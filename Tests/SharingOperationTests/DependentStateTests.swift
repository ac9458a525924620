import Foundation
import SharingOperation
import Testing

/// A state that a program defines, whose value cannot be compared.
private struct BadgeState: OperationState {
  typealias OperationValue = Opaque
  typealias StatusValue = Opaque
  typealias Failure = any Error

  var currentValue = Opaque(number: 0)
  let initialValue = Opaque(number: 0)
  var valueUpdateCount = 0
  var valueLastUpdatedAt: Date?
  var error: (any Error)?
  var errorUpdateCount = 0
  var errorLastUpdatedAt: Date?
  var tasks: [OperationTask<Opaque, any Error>] = []

  var isLoading: Bool { !tasks.isEmpty }

  mutating func scheduleFetchTask(_ task: inout OperationTask<Opaque, any Error>) {
    tasks.append(task)
  }

  mutating func update(with result: Result<Opaque, any Error>, using context: OperationContext) {
    switch result {
    case .success(let value):
      currentValue = value
      valueUpdateCount += 1
      valueLastUpdatedAt = context.operationClock.now()
    case .failure(let failure):
      error = failure
      errorUpdateCount += 1
      errorLastUpdatedAt = context.operationClock.now()
    }
  }

  mutating func update(
    with result: Result<Opaque, any Error>, for task: OperationTask<Opaque, any Error>
  ) { update(with: result, using: task.context) }

  mutating func finishFetchTask(_ task: OperationTask<Opaque, any Error>) {
    tasks.removeAll { $0.id == task.id }
  }

  mutating func reset(using context: OperationContext) -> ResetEffect {
    self = BadgeState()
    return ResetEffect()
  }
}

/// Returns the number of its run.
private struct Badge: StatefulOperationRequest {
  typealias State = BadgeState

  let numbers: Counter
  var path: OperationPath { ["badge"] }

  func run(
    isolation: isolated (any Actor)?, in context: OperationContext,
    with continuation: OperationContinuation<Opaque, any Error>
  ) async throws -> Opaque {
    Opaque(number: numbers.increment())
  }
}

@Suite struct DependentStateTests {
  @Test(
    "A wrapper that depends on a state which a program defines is bound once for each of its values"
  )
  func values() async throws {
    let client = OperationClient.quiet()
    let store = client.store(for: Badge(numbers: Counter()), initialState: BadgeState())
    let badge = SharedQuery(store)
    let bindings = Counter()
    let team = SharedQuery(dependingOn: badge, client: client) { (badge: Opaque) in
      bindings.increment()
      return TeamQuery(name: "\(badge.number)")
    }
    #expect(team.store?.path == TeamQuery(name: "0").path)
    for number in 1...2 {
      try await badge.run()
      #expect(team.store?.path == TeamQuery(name: "\(number)").path)
      #expect(bindings.count == number + 1)
    }
    // An error changes the state, and not the value.
    store.setResult(to: .failure(Refusal(reason: "no")))
    #expect(team.store?.path == TeamQuery(name: "2").path)
    #expect(bindings.count == 3)
  }
}
