import TestSupport
import Testing

@testable import Operation

/// The displayed value is the last value of the server with every edit that the value lacks, in the
/// order of the edits. The confirmed value has no pending edit. An edit is never displayed twice, and
/// one that fails is removed without the others. An out-of-date computation is ignored.
@Suite("OptimisticLayers, every sequence") struct OptimisticLayersExhaustiveTests {
  private enum Step: CaseIterable {
    case edit, succeedFirst, succeedLast, failFirst, failLast
    case beginRun, landOldest, landNewest, yieldOldest, cancelOldest, push, staleComputation
  }

  private struct Walk {
    private struct Edit {
      let id = OperationTaskID.next()
      let number: Int
      /// The number of its settlement.
      var settlement: Int?
    }

    private struct Run {
      /// The number of settled edits when the run began.
      let settlements: Int
      var hasYielded = false
      /// The value before the first yield, until another value replaces it.
      var before: Before?
    }

    private struct Before {
      let value: [Int]
      let requestedAt: Int
      let base: [Int]
      let idsInBase: Set<OperationTaskID>
    }

    private var layers = OptimisticLayers<[Int]>(base: [])
    private var value: [Int] = []
    /// The number of settled edits when the value was requested.
    private var requestedAt = 0
    private var edits: [Edit] = []
    private var runs: [Run] = []
    private var settlements = 0
    private var next = 0

    mutating func take(_ step: Step) throws -> Bool {
      next += 1
      switch step {
      case .edit:
        edits.append(Edit(number: next))
        layers.append(edits[edits.count - 1].id) { [next] in $0.append(next) }
      case .succeedFirst, .succeedLast, .failFirst, .failLast: return try endEdit(step)
      case .beginRun: runs.append(Run(settlements: settlements))
      case .landOldest, .landNewest:
        guard !runs.isEmpty else { return false }
        let run = runs.remove(at: step == .landOldest ? 0 : runs.count - 1)
        receive([100 + next], requestedAt: run.settlements)
        layers.runEnded()
      case .yieldOldest, .cancelOldest:
        guard !runs.isEmpty else { return false }
        if step == .yieldOldest { yieldOldest() } else { cancelOldest() }
      case .push: receive([next], requestedAt: settlements)
      case .staleComputation:
        guard layers.needsComputation || !layers.isEmpty else { return false }
        var computation = layers.computation(oldest: oldest)
        computation.perform()
        edits.append(Edit(number: next))
        layers.append(edits[edits.count - 1].id) { [next] in $0.append(next) }
        try mustHold(layers.finish(&computation) == nil, "an out-of-date computation is used")
      }
      try compute()
      return true
    }

    private mutating func endEdit(_ step: Step) throws -> Bool {
      let isFirst = step == .succeedFirst || step == .failFirst
      let isPending = { (edit: Edit) in edit.settlement == nil }
      let found =
        isFirst ? edits.firstIndex(where: isPending) : edits.lastIndex(where: isPending)
      guard let index = found else { return false }
      if step == .succeedFirst || step == .succeedLast {
        settlements += 1
        edits[index].settlement = settlements
        layers.settle(edits[index].id, as: settlements)
      } else {
        let removed = layers.remove(edits.remove(at: index).id)
        try mustHold(removed != nil, "a failed layer is returned")
      }
      try compute()
      return true
    }

    private mutating func yieldOldest() {
      let isFirst = !runs[0].hasYielded
      let earlier = isFirst ? present : runs[0].before
      receive([200 + next], requestedAt: runs[0].settlements)
      runs[0].before = earlier
      runs[0].hasYielded = true
    }

    private var present: Before {
      Before(
        value: value, requestedAt: requestedAt, base: layers.base, idsInBase: layers.idsInBase)
    }

    private mutating func cancelOldest() {
      let run = runs.removeFirst()
      layers.runEnded()
      guard let before = run.before else { return }
      for index in runs.indices { runs[index].before = nil }
      (value, requestedAt) = (before.value, before.requestedAt)
      layers.restore(before.base, idsInBase: before.idsInBase)
    }

    private mutating func receive(_ new: [Int], requestedAt moment: Int) {
      (value, requestedAt) = (new, moment)
      for index in runs.indices { runs[index].before = nil }
      layers.land(new, after: moment, isWhole: true)
    }

    private var oldest: Int {
      if runs.contains(where: \.hasYielded) { return -1 }
      return runs.map(\.settlements).min() ?? .max
    }

    private mutating func compute() throws {
      guard layers.needsComputation else { return try check(confirmed: nil) }
      var computation = layers.computation(oldest: oldest)
      computation.perform()
      try mustHold(layers.finish(&computation) != nil, "an up-to-date computation is used")
      try mustHold(!layers.needsComputation, "no further computation is needed")
      try check(confirmed: computation.confirmed)
    }

    private func check(confirmed: [Int]?) throws {
      let missing = edits.filter { $0.settlement.map { $0 > requestedAt } ?? true }
      let expected = value + missing.map(\.number)
      try mustHold(
        layers.displayed == expected, "\(expected) is displayed, and not \(layers.displayed)")
      let settled = value + missing.filter { $0.settlement != nil }.map(\.number)
      if let confirmed { try mustHold(confirmed == settled, "\(settled) is confirmed") }
      let pending = edits.count { $0.settlement == nil }
      try mustHold(layers.pendingCount == pending, "\(pending) edits are pending")
      // A settled layer is kept only for a run that began earlier, or behind a pending layer.
      if pending == 0, oldest >= settlements {
        try mustHold(layers.isEmpty, "a layer is kept without need")
      }
    }
  }

  @Test("The displayed value is that of the server, with every edit that it lacks")
  func everySequence() {
    exhaust("OptimisticLayers", events: Step.allCases, length: 6, from: Walk()) {
      walk, step in try walk.take(step)
    }
  }
}
