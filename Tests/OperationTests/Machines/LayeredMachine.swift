import ReactiveStreams
import TestSupport

@testable import Operation

/// The machine of a store with optimistic edits, and the part of the shell that performs its
/// transitions.
struct LayeredMachine<State: OperationState>: Sendable where State.StateValue: Equatable {
  typealias Machine = StoreMachine<State>

  private static var other: ThreadID { ThreadID(rawValue: 1) }
  var machine: Machine
  /// The state that other threads read before the transition.
  private var visible: State?
  /// Whether another thread has read a value during its computation.
  private(set) var isTorn = false

  init(_ machine: Machine) {
    self.machine = machine
  }

  var readByOthers: State { machine.visibleState(to: Self.other) }
  /// The gate at which writers on other threads wait.
  var gateOfOthers: Gate? { mutating get { machine.gate(for: Self.other) } }

  /// Delivers, and computes the values.
  mutating func perform(
    _ kind: Machine.TransitionKind = .change, _ transition: (inout Machine) -> Void
  ) {
    visible = readByOthers
    var effects = StoreEffects<Machine.Event>()
    machine.perform(kind, on: .current, use: StoreUse(), leaving: &effects, transition)
    machine.deliveries.deliver(effects.delivery)
    if effects.mustCompute { compute() }
    machine.settle()
  }

  mutating func endAccess() {
    visible = readByOthers
    if case .mustCompute = machine.endExclusiveAccess() { compute() }
    machine.settle()
  }

  private mutating func compute() {
    while var computation = machine.beginComputation() {
      // Until the computation ends, other threads read the earlier value.
      let read = readByOthers
      isTorn =
        isTorn || read.currentValue != visible?.currentValue
        || read.valueUpdateCount != visible?.valueUpdateCount
      computation.perform()
      machine.finishComputation(&computation)
      if case .ended = machine.endExclusiveAccess() { return }
    }
  }
}
