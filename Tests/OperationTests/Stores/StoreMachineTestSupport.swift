@testable import Operation
import ReactiveStreams

/// A store's machine, driven by hand: what the shell does with a lock is done here without one.
final class MachineDriver {
  typealias State = QueryState<Int, any Error>
  typealias Machine = StoreMachine<State>

  let clock: ManualClock
  var machine: Machine
  private let nobody = Nobody()

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

  /// Makes another one that goes on from here by itself.
  func copy() -> MachineDriver { MachineDriver(self) }

  /// Performs a transition; for the inside of `#expect`, which takes no mutating call.
  func on<Output>(_ transition: (inout Machine) -> Output) -> Output { transition(&machine) }

  struct Granted {
    let core: Machine.Core
    let isStarted: Bool
  }

  func grant(
    _ lease: Machine.Lease, cause: OperationRun.Cause = .fetch,
    handler: Subscriber<Machine.Event>? = nil, verdict: Machine.Runs.Verdict? = nil,
    seenUpdates: Int? = nil
  ) -> Machine.Grant {
    let core = Machine.Core(driver: nobody, cause: cause)
    return machine.grant(
      Machine.Wish(
        core: core, box: .init(machine.context), lease: lease, handler: handler,
        seenUpdates: seenUpdates),
      verdict: verdict)
  }

  /// The run that a wish gave, or nil if it was refused.
  func run(
    _ lease: Machine.Lease, handler: Subscriber<Machine.Event>? = nil
  ) -> Granted? {
    guard case .granted(_, let core, let isStarted, _) = grant(lease, handler: handler) else {
      return nil
    }
    return Granted(core: core, isStarted: isStarted)
  }

  /// The run that a caller gets without a wish, if he needs none.
  func enter(in context: OperationContext = OperationContext()) -> Granted? {
    machine.enter(.init(context), input: nil, driver: nobody, place: nil).map {
      Granted(core: $0.core, isStarted: $0.isStarted)
    }
  }

  /// Subscribes a recorder of names.
  func subscribe() -> (names: Recorder<String>, id: UInt64) {
    let names = Recorder<String>()
    let id = machine.greet(Subscriber { names.append($0.name) }).id
    return (names, id)
  }

  /// Performs what is to be delivered and releases what has given way, as the shell does.
  func settle() {
    machine.released = nil
    var delivery = machine.tellUntold() ?? machine.deliveries.beginDraining()
    while let current = delivery {
      current.perform()
      delivery = machine.deliveries.takeNext()
    }
  }
}

extension StoreMachine {
  /// Tells what a write has left to the thread to tell; gives what is to be told behind that.
  mutating func tellUntold() -> Delivery<Event>? {
    guard var audience = deliveries.lendAudience() else { return nil }
    audience.hear(.stateChanged(state))
    return deliveries.takeNext(returning: &audience)
  }

  /// Subscribes as the shell does: the subscriber is greeted, and what comes behind that is told.
  mutating func greet(_ subscriber: Subscriber<Event>) -> (id: UInt64, first: FirstSight?) {
    let (id, isGreeted, first) = subscribe(subscriber)
    if isGreeted {
      subscriber.receive(.stateChanged(present))
      while let delivery = deliveries.takeNext() { delivery.perform() }
    }
    return (id, first)
  }
}

/// A driver that is never asked: the tests call the machines themselves.
final class Nobody: TaskDriver {
  func enter(
    _ task: TaskNode, configuration: OperationTaskConfiguration, onlyToStart: Bool
  ) -> Bool { false }
  func leave(_ id: OperationTaskID) {}
  func cancel(_ id: OperationTaskID) {}
}
