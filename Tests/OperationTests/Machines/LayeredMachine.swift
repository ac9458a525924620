import ReactiveStreams

@testable import Operation

/// The machine of a store with optimistic edits, and what the shell does with its transitions.
struct LayeredMachine<State: OperationState>: Sendable where State.StateValue: Equatable {
  typealias Machine = StoreMachine<State>

  private static var other: ThreadID { ThreadID(rawValue: 1) }
  var machine: Machine
  /// What the others saw before the transition.
  private var visible: State?
  /// Whether they have seen what was being computed.
  private(set) var isTorn = false

  init(_ machine: Machine) {
    self.machine = machine
  }

  var seenByOthers: State { machine.visibleState(to: Self.other) }
  /// What the others wait for who want to write.
  var gateOfOthers: Gate? { mutating get { machine.gate(for: Self.other) } }

  /// Delivers, and computes the values.
  mutating func perform(isEdit: Bool = false, _ transition: (inout Machine) -> Void) {
    visible = seenByOthers
    let (_, delivery, aftermath) = machine.perform(
      transition, .current, StoreUse(), isEdit: isEdit)
    deliver(delivery)
    if aftermath.mustRender { render() }
    settle()
  }

  mutating func endAccess() {
    visible = seenByOthers
    if case .render = machine.endExclusiveAccess() { render() }
    settle()
  }

  private mutating func render() {
    var isOver = false
    while !isOver, var rendering = machine.beginComputing() {
      // As long as it is computed, the others see what was there before.
      let seen = seenByOthers
      isTorn =
        isTorn || seen.currentValue != visible?.currentValue
        || seen.valueUpdateCount != visible?.valueUpdateCount
      rendering.perform()
      if case .open = machine.finishRendering(&rendering, isLast: false) { isOver = true }
    }
  }

  private mutating func settle() {
    machine.notePlain()
    machine.released = nil
    deliver(machine.deliveries.beginDraining())
  }

  private mutating func deliver(_ first: Delivery<Machine.Event>?) {
    var delivery = machine.tellUntold() ?? first
    while let current = delivery {
      current.perform()
      delivery = machine.deliveries.takeNext()
    }
  }
}
