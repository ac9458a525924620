import ReactiveStreams
import TestSupport

@testable import Operation

/// A store's machine that a test drives. It does without a lock what the shell does with one.
final class MachineDriver {
  typealias State = QueryState<Int, any Error>
  typealias Machine = StoreMachine<State>

  let clock: ManualClock
  var machine: Machine
  private let driver = IdleDriver()

  init(deduplication: Deduplication = .equivalentContexts) {
    clock = ManualClock()
    var context = OperationContext()
    context.operationClock = clock
    context.settings.values.deduplication = deduplication
    machine = Machine(state: State(), context: context)
  }

  private init(_ other: MachineDriver) {
    (clock, machine) = (other.clock, other.machine)
  }

  /// Returns another driver that continues from this state.
  func copy() -> MachineDriver { MachineDriver(self) }

  /// Performs a transition, for use inside `#expect`, which accepts no mutating call.
  func on<Output>(_ transition: (inout Machine) -> Output) -> Output { transition(&machine) }

  func admit(
    _ lease: Machine.Lease, cause: OperationRun.Cause = .fetch,
    handler: Subscriber<Machine.Event>? = nil, verdict: RunVerdict? = nil,
    seenResults: Int? = nil
  ) -> Machine.Admission {
    let core = Machine.Core(TaskNode(cause: cause, driver: driver))
    return machine.admit(
      Machine.NewRun(
        core: core, box: .init(machine.context), lease: lease, handler: handler,
        seenResults: seenResults),
      verdict: verdict)
  }

  /// Returns the run that is admitted, or `nil` if it is refused.
  func run(
    _ lease: Machine.Lease, handler: Subscriber<Machine.Event>? = nil
  ) -> Machine.AdmittedRun? {
    guard case .admitted(let run) = admit(lease, handler: handler) else { return nil }
    return run
  }

  /// Subscribes a recorder of names.
  func subscribe() -> (names: Recorder<String>, id: Machine.ObserverID) {
    let names = Recorder<String>()
    let id = machine.subscribe(Subscriber { names.append($0.name) }).id
    settle()
    return (names, id)
  }

  /// Performs the queued deliveries and releases replaced values, as the shell does.
  func settle() {
    machine.settle()
  }
}

extension StoreMachine {
  /// Performs the queued deliveries and releases replaced values, as the shell does.
  mutating func settle() {
    var replaced = ReplacedValues<State>()
    committed.moveReplaced(into: &replaced)
    deliveries.deliver()
  }
}

/// A driver that is never called: the tests call the machines themselves.
final class IdleDriver: TaskDriver {
  func start(_ task: TaskNode, configuration: OperationTaskConfiguration, joins: Bool) -> Bool {
    false
  }
  func releaseLease(on id: OperationTaskID) {}
  func cancel(_ id: OperationTaskID) {}
}

extension StoreMachine {
  /// Marks the value as stale. Returns whether a run has to start now.
  @discardableResult
  mutating func invalidate() -> Bool {
    _ = mark(isRead: false)
    return needsRerun
  }

  /// Ends a run, for tests that have no lock.
  mutating func end(
    _ id: OperationTaskID, _ output: Output
  ) -> (isCounted: Bool, mustFollow: Bool, mustNotifyReaders: Bool) {
    var record: Runs.Record?
    return end(id, output, releasing: &record)
  }
}
