import ReactiveStreams
import TestSupport
import Testing

@testable import Operation

/// The part of a store's machine that tracks its observers. One thread at a time notifies the
/// controllers, of a beginning and an end in turn. When no thread notifies them, they have the current
/// state. The triggers are held once for each observation, and returned when it ends.
@Suite("The observation of a store, every sequence") struct StoreControlExhaustiveTests {
  private enum Step: CaseIterable {
    case subscribe, unsubscribe, setTriggers, setLateTriggers, nextNotification, notified
  }

  private final class Walk {
    private let driver = MachineDriver()
    private var ids: [MachineDriver.Machine.ObserverID] = []
    private var observations: [Int] = []
    private var withTriggers: Set<Int> = []
    private var held: OperationSubscription?
    private var isNotifying: Bool? = false
    private var lastNotified = false

    func take(_ step: Step) throws -> Bool {
      switch step {
      case .subscribe:
        let new = driver.on { $0.subscribe(Subscriber { _ in }) }
        try mustHold(new.isFirst == ids.isEmpty, "the first one begins a group")
        if new.isFirst {
          try mustHold(!observations.contains(new.id.group), "each group has its own number")
          observations.append(new.id.group)
        }
        ids.append(new.id)
      case .unsubscribe:
        guard !ids.isEmpty else { return false }
        let id = ids.removeFirst()
        let removal = driver.on { $0.unsubscribe(id) }
        try mustHold(removal.subscriber != nil, "a subscriber can be removed")
        try mustHold(
          removal.triggers == (ids.isEmpty ? held : nil),
          "the removal of the last subscriber returns the triggers")
        if ids.isEmpty { held = nil }
      case .setTriggers, .setLateTriggers: return try setTriggers(step == .setLateTriggers)
      case .nextNotification: try nextNotification()
      case .notified:
        guard let notification = isNotifying else { return false }
        driver.machine.observation.notified = ([], notification)
        (isNotifying, lastNotified) = (nil, notification)
      }
      return true
    }

    private func setTriggers(_ isLate: Bool) throws -> Bool {
      let index = isLate ? observations.count - 2 : observations.count - 1
      guard observations.indices.contains(index) else { return false }
      let observation = observations[index]
      guard withTriggers.insert(observation).inserted else { return false }
      let triggers = OperationSubscription {}
      let back = driver.on { $0.observation.setTriggers(triggers, of: observation) }
      let isOver = isLate || ids.isEmpty
      try mustHold(
        back == (isOver ? triggers : nil), "the triggers of a past observation are returned")
      if !isOver { held = triggers }
      return true
    }

    private func nextNotification() throws {
      let notification = driver.on { $0.controllersToNotify() }
      let isDue = isNotifying == nil && lastNotified == ids.isEmpty
      try mustHold(
        (notification != nil) == isDue, "one thread notifies the controllers, and only of a change")
      guard let notification else { return }
      try mustHold(
        notification.isObserved == !ids.isEmpty, "the notification has the current state")
      isNotifying = notification.isObserved
    }
  }

  @Test("One thread at a time notifies the controllers of each beginning and end in turn")
  func everySequence() {
    exhaust("StoreMachine, observation", events: Step.allCases, length: 6, making: { Walk() }) {
      walk, step in try walk.take(step)
    }
  }
}
