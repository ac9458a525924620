import FoundationEssentials
import Synchronization
import TestSupport

@testable import Operation

/// A driver of tasks that never run: the tests call the state directly.
final class NotingDriver: TaskDriver {
  /// The tasks that were cancelled.
  let cancellations: Tape<OperationTaskID>

  init(cancellations: Tape<OperationTaskID>) {
    self.cancellations = cancellations
  }

  func start(_ task: TaskNode, configuration: OperationTaskConfiguration, joins: Bool) -> Bool {
    false
  }
  func releaseLease(on id: OperationTaskID) {}
  func cancel(_ id: OperationTaskID) { cancellations.note(id) }
}

extension OperationTask {
  /// Returns a task that never runs.
  static func idle(
    noting cancellations: Tape<OperationTaskID>, in context: OperationContext
  ) -> OperationTask {
    OperationTask(
      TaskCore(TaskNode(driver: NotingDriver(cancellations: cancellations))), box: .init(context))
  }
}

/// A clock whose time is the step of a walk. The walks of one test share it, so each step sets it
/// first.
final class StepClock: OperationClock {
  private let step = Atomic(0)

  static func date(_ step: Int) -> Date { Date(timeIntervalSinceReferenceDate: Double(step)) }

  func set(_ new: Int) { step.store(new, ordering: .relaxed) }
  func now() -> Date { Self.date(step.load(ordering: .relaxed)) }
  func sleep(for duration: Duration) async throws {}
}

/// The results that a state has received since its beginning. Its counts, its dates and its error
/// follow from them.
struct Arrivals<Value> {
  struct Failed: Error, Hashable {
    let moment: Int
  }

  /// The number of results, and the moment of the last one.
  private(set) var values = (count: 0, last: Int?.none)
  private var failures = (count: 0, last: Int?.none)
  private(set) var lastValue: Value?
  /// The last failure, if no value has come since.
  private(set) var lastError: Failed?

  /// - Parameter moment: `nil` for a result without a date, which removes the value.
  mutating func note(_ result: Result<Value, Failed>, at moment: Int?) {
    switch result {
    case .success(let value):
      values = (values.count + 1, moment)
      (lastValue, lastError) = (value, nil)
    case .failure(let failure):
      failures = (failures.count + 1, failure.moment)
      lastError = failure
    }
  }

  /// Checks that a state matches the results that it has received.
  func check<State: OperationState>(
    _ state: State, extraUpdates: Int = 0
  ) throws where State.Failure == Failed {
    let date = StepClock.date
    try mustHold(
      state.valueUpdateCount == values.count + extraUpdates, "\(values.count) values are counted")
    try mustHold(state.errorUpdateCount == failures.count, "\(failures.count) failures are counted")
    try mustHold(state.valueLastUpdatedAt == values.last.map(date), "the last value has its date")
    try mustHold(
      state.errorLastUpdatedAt == failures.last.map(date), "the last failure has its date")
    try mustHold(state.error == lastError, "the error is the last result, if that is a failure")
  }
}
