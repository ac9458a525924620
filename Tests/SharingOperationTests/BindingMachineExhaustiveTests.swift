import TestSupport
import Testing

@testable import SharingOperation

/// Every binding begins an epoch, and only events of the present epoch have an effect. A received
/// state returns one change from each state that readers may have read. A subscription is stored once
/// and returned once. After the end, events are ignored.
@Suite struct BindingMachineSequences {
  private typealias State = QueryState<Int, any Error>
  private typealias Machine = BindingMachine<State>

  private enum Step: CaseIterable {
    case bindFirst, bindSecond, unbind, receive, receiveLate, addReadState
    case subscribed, subscribedLate, end, deliver
  }

  private struct Walk {
    private static let stores = [1, 2].map { number in
      OperationStore.detached(
        query: Query<Int, any Error>(path: ["\(number)"]) { _ in number }, initialValue: number)
    }

    private var machine = Machine(.store(stores[0]))
    private let received = Tape<Int?>()
    /// The index of the bound store, or `nil` for no store.
    private var bound: Int? = 0
    private var epoch = 0
    private var hasSubscribed: Set<Int> = []
    private var stored: OperationSubscription?
    /// The values that readers may have read.
    private var readValues: [Int?] = [1]
    private var isChanging = false
    private var hasEnded = false
    private var pending: [Int?] = []
    private var next = 10

    init() {
      _ = machine.deliveries.subscribe(
        Subscriber { [received] signal in
          if case .element(let binding, _) = signal { received.note(binding.currentValue) }
        })
    }

    mutating func take(_ step: Step) throws -> Bool {
      next += 1
      switch step {
      case .bindFirst: try bind(0)
      case .bindSecond: try bind(1)
      case .unbind: try bind(nil)
      case .receive: try receive(in: epoch)
      case .receiveLate:
        guard epoch > 0 else { return false }
        try receive(in: epoch - 1)
      case .addReadState:
        machine.addReadStates([.init(State(initialValue: next))])
        if isChanging { readValues.append(next) }
      case .subscribed, .subscribedLate:
        return try subscribed(in: step == .subscribed ? epoch : epoch - 1)
      case .end:
        try mustHold(machine.end().subscription == stored, "the end returns the subscription")
        (stored, hasEnded) = (nil, true)
      case .deliver: try deliver()
      }
      try mustHold(machine.epoch == epoch, "the epoch is \(epoch)")
      try mustHold(machine.isCurrent(epoch) == !hasEnded, "the epoch is current until the end")
      try mustHold(
        machine.binding.store === bound.map { Self.stores[$0] }, "the binding has the bound store")
      return true
    }

    private mutating func bind(_ new: Int?) throws {
      let binding = new.map { .store(Self.stores[$0]) } ?? Binding<State>.unbacked(State())
      let replacement = machine.bind(to: binding)
      guard new != bound, !hasEnded else {
        return try mustHold(replacement == nil, "the same store is not bound again")
      }
      epoch += 1
      try mustHold(replacement?.epoch == epoch, "a binding begins an epoch")
      try mustHold(
        replacement?.replaced.store === bound.map { Self.stores[$0] },
        "the replaced store is returned")
      try mustHold(replacement?.subscription == stored, "its subscription is returned")
      (bound, stored, isChanging) = (new, nil, true)
      pending.append(new.map { $0 + 1 })
    }

    private mutating func receive(in moment: Int) throws {
      let changes = machine.receive(State(initialValue: next), epoch: moment)
      let counts = moment == epoch && !hasEnded
      let expected = counts ? readValues : []
      try mustHold(changes.map(\.old.currentValue) == expected, "the changes are from \(expected)")
      try mustHold(
        changes.allSatisfy { $0.new.currentValue == next && $0.isSameStore == !isChanging },
        "the changes are to the received state, within one store or between two")
      if counts { (readValues, isChanging) = ([next], false) }
    }

    private mutating func subscribed(in moment: Int) throws -> Bool {
      guard moment >= 0, hasSubscribed.insert(moment).inserted else { return false }
      let subscription = OperationSubscription {}
      let back = machine.setSubscription(subscription, epoch: moment)
      let counts = moment == epoch && !hasEnded
      try mustHold(back == (counts ? nil : subscription), "a late subscription is returned")
      if counts { stored = subscription }
      return true
    }

    private mutating func deliver() throws {
      machine.deliveries.deliver()
      let delivered = received.take()
      try mustHold(delivered == pending, "\(pending) is delivered, and not \(delivered)")
      pending = []
    }
  }

  @Test("Only events of the present binding have an effect") func everySequence() {
    exhaust("BindingMachine", events: Step.allCases, length: 5, from: Walk()) {
      walk, step in try walk.take(step)
    }
  }
}
