import FoundationEssentials
import Synchronization
import TestSupport

@testable import Operation

/// A driver of tasks that are never run: the tests call a state themselves.
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
  /// A task that is never run.
  static func idle(
    noting cancellations: Tape<OperationTaskID>, in context: OperationContext
  ) -> OperationTask {
    OperationTask(
      TaskCore(TaskNode(driver: NotingDriver(cancellations: cancellations))), box: .init(context))
  }
}

/// A clock that shows at which step a walk is. The walks of one test share it, so each step sets it
/// first.
final class StepClock: OperationClock {
  private let step = Atomic(0)

  static func date(_ step: Int) -> Date { Date(timeIntervalSinceReferenceDate: Double(step)) }

  func set(_ new: Int) { step.store(new, ordering: .relaxed) }
  func now() -> Date { Self.date(step.load(ordering: .relaxed)) }
  func sleep(for duration: Duration) async throws {}
}

/// What came into a state since its beginning, from which its counts, its dates and its error
/// follow.
struct Arrivals<Value> {
  struct Failed: Error, Hashable {
    let moment: Int
  }

  /// How many came, and when the last one did.
  private var (values, failures) = ((count: 0, last: Int?.none), (count: 0, last: Int?.none))
  private(set) var lastValue: Value?
  /// What went wrong last, if nothing has come since.
  private(set) var lastError: Failed?

  /// - Parameter moment: `nil` for what has no date, since the value was taken away.
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

  /// Checks what a state says about what came into it.
  func check<State: OperationState>(
    _ state: State, extraUpdates: Int = 0
  ) throws where State.Failure == Failed {
    let date = StepClock.date
    try mustHold(
      state.valueUpdateCount == values.count + extraUpdates, "\(values.count) values came")
    try mustHold(state.errorUpdateCount == failures.count, "\(failures.count) failures came")
    try mustHold(state.valueLastUpdatedAt == values.last.map(date), "the last value has its date")
    try mustHold(state.errorLastUpdatedAt == failures.last.map(date), "so has the last failure")
    try mustHold(state.error == lastError, "the error is that of the last arrival, if it is one")
  }
}
