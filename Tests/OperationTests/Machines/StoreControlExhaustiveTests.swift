import ReactiveStreams
import TestSupport
import Testing

@testable import Operation

/// What a store's machine knows of its observers: one thread at a time tells the controllers, a
/// beginning and an end take turns, and when nobody is at it they know how it is. What wants runs is
/// held once for each observation, and given back with it.
@Suite("The observation of a store, every sequence") struct StoreControlExhaustiveTests {
  private enum Step: CaseIterable {
    case subscribe, unsubscribe, setTriggers, setLateTriggers, nextTelling, told
  }

  private final class Walk {
    private let driver = MachineDriver()
    private var ids: [MachineDriver.Machine.Observation] = []
    private var observations: [Int] = []
    private var hasTriggers: Set<Int> = []
    private var held: OperationSubscription?
    private var isTelling: Bool? = false
    private var known = false

    func take(_ step: Step) throws -> Bool {
      switch step {
      case .subscribe:
        let new = driver.on { $0.subscribe(Subscriber { _ in }) }
        try mustHold(new.isFirst == ids.isEmpty, "the first one begins a group")
        if new.isFirst {
          try mustHold(!observations.contains(new.group), "groups are told apart")
          observations.append(new.group)
        }
        ids.append(new)
      case .unsubscribe:
        guard !ids.isEmpty else { return false }
        let id = ids.removeFirst()
        let removal = driver.on { $0.unsubscribe(id) }
        try mustHold(removal.subscriber != nil, "who is there can go")
        try mustHold(
          removal.triggers == (ids.isEmpty ? held : nil), "the last one takes them")
        if ids.isEmpty { held = nil }
      case .setTriggers, .setLateTriggers: return try setTriggers(step == .setLateTriggers)
      case .nextTelling: try nextTelling()
      case .told:
        guard let telling = isTelling else { return false }
        driver.machine.observation.didNotify([], isObserved: telling)
        (isTelling, known) = (nil, telling)
      }
      return true
    }

    private func setTriggers(_ isLate: Bool) throws -> Bool {
      let index = isLate ? observations.count - 2 : observations.count - 1
      guard observations.indices.contains(index) else { return false }
      let observation = observations[index]
      guard hasTriggers.insert(observation).inserted else { return false }
      let triggers = OperationSubscription {}
      let back = driver.on { $0.observation.setTriggers(triggers, of: observation) }
      let isOver = isLate || ids.isEmpty
      try mustHold(back == (isOver ? triggers : nil), "those of a past observation are given back")
      if !isOver { held = triggers }
      return true
    }

    private func nextTelling() throws {
      let telling = driver.on { $0.controllersToNotify() }
      let isDue = isTelling == nil && known == ids.isEmpty
      try mustHold((telling != nil) == isDue, "they are told by one thread, and only of a change")
      guard let telling else { return }
      try mustHold(telling.isObserved == !ids.isEmpty, "they are told how it is")
      isTelling = telling.isObserved
    }
  }

  @Test("The controllers are told of each beginning and end in turn, by one thread at a time")
  func everySequence() {
    exhaust("StoreMachine, observation", events: Step.allCases, length: 6, making: { Walk() }) {
      walk, step in try walk.take(step)
    }
  }
}
