import ReactiveStreams
import TestSupport
import Testing

@testable import Operation

/// Delivers the queued elements, and returns the delivered ones.
func deliver<Machine: DeliveryMachine, Element>(
  _ machine: inout Machine, to tape: Tape<Element>
) -> [Element] {
  machine.deliveries.deliver()
  return tape.take()
}

/// When all moves have been reported, in any order, the sums are the phases of the stores; until then
/// no published count is below zero. A subscriber is notified of each move.
@Suite("ActivityMachine, every sequence") struct ActivityExhaustiveTests {
  private enum Step { case move(Int, ActivityPhase), report(isFirst: Bool), subscribe, deliver }

  private struct Walk {
    private var machine = ActivityMachine()
    private let delivered = Tape<OperationActivity>()
    private var phases: [ActivityPhase] = [.idle, .idle]
    private var unreported: [(old: ActivityPhase, new: ActivityPhase)] = []
    private var isSubscribed = false
    private var pendingCount = 0

    mutating func take(_ step: Step) throws -> Bool {
      switch step {
      case .move(let store, let phase):
        guard phase != phases[store] else { return false }
        unreported.append((phases[store], phase))
        phases[store] = phase
      case .report(let isFirst):
        guard !unreported.isEmpty else { return false }
        let move = unreported.remove(at: isFirst ? 0 : unreported.count - 1)
        machine.move(.query, from: move.old, to: move.new)
        if isSubscribed { pendingCount += 1 }
      case .subscribe:
        guard !isSubscribed else { return false }
        isSubscribed = true
        _ = machine.deliveries.subscribe(Subscriber { [delivered] in delivered.note($0) })
      case .deliver:
        let moves = OperationTests.deliver(&machine, to: delivered)
        try mustHold(moves.count == pendingCount, "each move is delivered")
        try mustHold(moves.isEmpty || moves.last == machine.activity, "the last one is present")
        pendingCount = 0
      }
      try check()
      return true
    }

    private func check() throws {
      let counts = machine.activity.queries
      let all = [counts.running, counts.paused, counts.failed]
      try mustHold(all.allSatisfy { $0 >= 0 }, "a count is below zero")
      guard unreported.isEmpty else { return }
      let expected = OperationActivity.Counts(
        running: phases.count { $0 == .running }, paused: phases.count { $0 == .paused },
        failed: phases.count { $0 == .failed })
      try mustHold(counts == expected, "the counts are \(expected), and not \(counts)")
    }
  }

  @Test("The sums are right once all moves are reported, and never below zero")
  func everySequence() {
    let moves = [0, 1].flatMap { store in
      [ActivityPhase.idle, .running, .paused, .failed].map { Step.move(store, $0) }
    }
    exhaust(
      "ActivityMachine",
      events: moves + [.report(isFirst: true), .report(isFirst: false), .subscribe, .deliver],
      length: 5, from: Walk()
    ) { walk, step in try walk.take(step) }
  }
}
