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

  @Test("A reader of the error of a state that a program defines is notified of each error, once")
  func errors() {
    let client = OperationClient.quiet()
    let store = client.store(for: Badge(numbers: Counter()), initialState: BadgeState())
    let badge = SharedQuery(store)
    store.setResult(to: .failure(Refusal(reason: "no")))
    let error = track { _ = badge.projectedValue.error }
    // The state keeps its error.
    store.setResult(to: .success(Opaque(number: 1)))
    #expect(error.count == 0)
    store.setResult(to: .failure(Refusal(reason: "no")))
    #expect(error.count == 1)
  }

  @Test("A dependent wrapper follows another store, also if neither value was ever fetched")
  func initialValues() {
    let client = OperationClient.quiet()
    for number in 1...2 {
      _ = client.store(for: Query.opaque(number), initialValue: Opaque(number: number))
    }
    let opaque = SharedQuery(Query.opaque(1), client: client)
    let team = SharedQuery(dependingOn: opaque) { (opaque: Opaque) in
      TeamQuery(name: "\(opaque.number)")
    }
    #expect(team.store?.path == TeamQuery(name: "1").path)
    opaque.bind(to: Query.opaque(2))
    #expect(team.store?.path == TeamQuery(name: "2").path)
  }

  @Test("After a reset, a dependent wrapper whose own value had arrived displays no earlier one")
  func resetOfArrived() {
    let id = SharedQuery(WrittenNumber(path: ["id"]), client: .quiet())
    id.withLock { $0 = 1 }
    let number = SharedQuery(dependingOn: id, keepingPrevious: true) { (id: Int) in
      WrittenNumber(path: ["written", id])
    }
    number.withLock { $0 = 5 }
    id.withLock { $0 = 2 }
    #expect(number.wrappedValue == 5)
    number.withLock { $0 = 6 }
    number.resetState()
    #expect(number.wrappedValue == nil && !number.isPrevious)
  }
}
