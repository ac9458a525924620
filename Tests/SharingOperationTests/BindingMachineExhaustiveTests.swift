import TestSupport
import Testing

@testable import SharingOperation

/// Every binding begins an epoch, and only what comes of the present one gives steps: one from the
/// state that readers were told last, and one from each that they may have seen around the binding.
/// A subscription is held once and given back once. When the wrapper is gone nothing is bound any
/// more.
@Suite struct BindingMachineSequences {
  private typealias State = QueryState<Int, any Error>
  private typealias Machine = BindingMachine<State>

  private enum Step: CaseIterable {
    case bindFirst, bindSecond, unbind, receive, receiveLate, glimpse
    case subscribed, subscribedLate, retire, deliver
  }

  private struct Walk {
    private static let stores = [1, 2].map { number in
      OperationStore.detached(
        query: Query<Int, any Error>(path: ["\(number)"]) { _ in number }, initialValue: number)
    }

    private var machine = Machine(.store(stores[0]))
    private let heard = Tape<Int?>()
    /// The store that is bound, or nil for nothing.
    private var bound: Int? = 0
    private var epoch = 0
    private var hasSubscribed: Set<Int> = []
    private var held: OperationSubscription?
    private var lastValue: Int? = 1
    private var glimpses: [Int?] = []
    private var isSettling = false
    private var isRetired = false
    private var pending: [Int?] = []
    private var next = 10

    init() {
      _ = machine.deliveries.subscribe(
        Subscriber { [heard] signal in
          if case .element(let binding) = signal { heard.note(binding.currentValue) }
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
      case .glimpse:
        machine.glimpse([State(initialValue: next)])
        if isSettling { glimpses.append(next) }
      case .subscribed, .subscribedLate:
        return try subscribed(in: step == .subscribed ? epoch : epoch - 1)
      case .retire:
        try mustHold(machine.retire() == held, "the end gives back what is held")
        (held, isRetired) = (nil, true)
      case .deliver: try deliver()
      }
      try mustHold(machine.epoch == epoch, "the epoch is \(epoch)")
      try mustHold(
        machine.binding.store === bound.map { Self.stores[$0] }, "what is bound is there")
      return true
    }

    private mutating func bind(_ new: Int?) throws {
      let binding = new.map { .store(Self.stores[$0]) } ?? Binding<State>.none(State())
      let change = machine.bind(binding)
      guard new != bound, !isRetired else {
        return try mustHold(change == nil, "what is there is not bound again")
      }
      epoch += 1
      try mustHold(change?.epoch == epoch, "a binding begins an epoch")
      try mustHold(
        change?.left.store === bound.map { Self.stores[$0] }, "what was there is given back")
      try mustHold(change?.subscription == held, "and so is its subscription")
      (bound, held, isSettling) = (new, nil, true)
      pending.append(new.map { $0 + 1 })
    }

    private mutating func receive(in moment: Int) throws {
      let steps = machine.receive(State(initialValue: next), epoch: moment)
      let isPresent = moment == epoch
      let expected = isPresent ? [lastValue] + glimpses : []
      try mustHold(steps.map(\.old.currentValue) == expected, "the steps begin at \(expected)")
      try mustHold(
        steps.allSatisfy { $0.new.currentValue == next && $0.isSameStore == !isSettling },
        "the steps lead to what came, of one store or of two")
      if isPresent { (lastValue, glimpses, isSettling) = (next, [], false) }
    }

    private mutating func subscribed(in moment: Int) throws -> Bool {
      guard moment >= 0, hasSubscribed.insert(moment).inserted else { return false }
      let subscription = OperationSubscription {}
      let back = machine.setSubscription(subscription, epoch: moment)
      let counts = moment == epoch && !isRetired
      try mustHold(back == (counts ? nil : subscription), "one that is late is given back")
      if counts { held = subscription }
      return true
    }

    private mutating func deliver() throws {
      var delivery = machine.deliveries.beginDraining()
      while let current = delivery {
        current.perform()
        delivery = machine.deliveries.takeNext()
      }
      let told = heard.take()
      try mustHold(told == pending, "\(pending) is told, and not \(told)")
      pending = []
    }
  }

  @Test("Only what comes of the present binding counts") func everySequence() {
    exhaust("BindingMachine", events: Step.allCases, length: 5, from: Walk()) {
      walk, step in try walk.take(step)
    }
  }
}
