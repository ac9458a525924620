import ReactiveStreams
import Testing

@testable import Operation

/// Exclusive access without a store.
@Suite("ExclusiveAccess") struct ExclusiveAccessPartTests {
  private typealias State = QueryState<Int, any Error>
  private typealias Access = ExclusiveAccess<State>

  private let snapshot = StateSnapshot(
    displayed: State(initialValue: 1), confirmedValue: 1, valueDate: nil, isInvalidated: false,
    resultCount: 0, confirmedVersion: 0)
  private var access: Access

  init() {
    access = Access(owner: ThreadID(rawValue: 1), snapshot: snapshot)
  }

  private let run = OperationRun(id: .next(), cause: .fetch, context: OperationContext())

  private func names(_ notifications: [Access.Notification]) -> [String] {
    notifications.map { event, handlers in
      if case .stateChanged(let state) = event {
        "state \(state.currentValue ?? -1) \(handlers.count)"
      } else {
        "event \(handlers.count)"
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
    access.events.append((.runStarted(run), []))
    access.noteChange(for: handlers)
    #expect(names(access.notifications(with: State(initialValue: 7))) == ["state 7 2", "event 0"])
  }

  @Test("An event without a change is notified alone")
  mutating func eventAlone() {
    access.events.append((.runStarted(run), [Subscriber { _ in }]))
    #expect(names(access.notifications(with: State())) == ["event 1"])
  }
}
