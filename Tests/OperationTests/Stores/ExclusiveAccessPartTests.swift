import ReactiveStreams
import Testing

@testable import Operation

/// Exclusive access without a store, and the notifications that are withheld.
@Suite("ExclusiveAccess and withheld notifications") struct ExclusiveAccessPartTests {
  private typealias State = QueryState<Int, any Error>
  private typealias Access = ExclusiveAccess<State>

  private let snapshot = StateSnapshot(
    displayed: State(initialValue: 1), confirmedValue: 1, valueDate: nil, isInvalidated: false,
    resultCount: 0)
  private var access: Access

  init() {
    access = Access(owner: ThreadID(rawValue: 1), snapshot: snapshot)
  }

  private func names(_ notifications: [WithheldNotification<State>]) -> [String] {
    notifications.map { notification in
      switch notification {
      case .state(let state, let handlers): "state \(state.currentValue ?? -1) \(handlers.count)"
      case .event(_, let handlers): "event \(handlers.count)"
      }
    }
  }

  @Test("Access without a change has no notifications")
  func unchanged() {
    #expect(access.notifications(with: State()).isEmpty)
    #expect(!access.hasChanged && access.depth == 1)
    #expect(access.gates.isEmpty && access.actions.isEmpty)
  }

  @Test("Many changes cause one notification, with each handler once, before the events")
  mutating func changes() {
    let handlers = (0..<2).map { _ in Subscriber<OperationEvent<State>> { _ in } }
    access.noteChange(for: [handlers[0]])
    access.withhold(.stateChanged(State()), also: [])
    access.noteChange(for: handlers)
    #expect(names(access.notifications(with: State(initialValue: 7))) == ["state 7 2", "event 0"])
  }

  @Test("An event without a change is notified alone")
  mutating func eventAlone() {
    access.withhold(.stateChanged(State()), also: [Subscriber { _ in }])
    #expect(names(access.notifications(with: State())) == ["event 1"])
  }

  @Test("Each waiting writer has a gate of its own, and actions keep their order")
  mutating func gatesAndActions() {
    let first = access.makeGate()
    let second = access.makeGate()
    #expect(first !== second && access.gates.count == 2)
    let performed = Recorder<Int>()
    access.atEnd([{ performed.append(1) }])
    access.atEnd([{ performed.append(2) }, { performed.append(3) }])
    for action in access.actions { action() }
    #expect(performed.all == [1, 2, 3])
  }

  @Test("Withheld notifications keep their order, and count the edits that their states lack")
  func withheld() {
    var withheld = WithheldNotifications<State>(snapshot: snapshot)
    withheld.append(.state(State(initialValue: 1), also: []))
    withheld.append(.event(.stateChanged(State()), also: []))
    #expect(names(withheld.notifications) == ["state 1 0", "event 0"])
    #expect(withheld.confirmedEdits == 0)
    withheld.noteComputation(confirmedEdits: 2)
    #expect(withheld.confirmedEdits == 2)
    #expect(withheld.snapshot === snapshot)
  }
}
