import TestSupport
import Testing

@testable import Operation

/// What is shown is what the server gave last, with every edit that it does not have yet, in the
/// order in which they were made; what is confirmed has no edit whose work is under way. An edit is
/// never shown twice, and one that fails goes alone. A rendering that is out of date counts for
/// nothing.
@Suite("OptimisticLayers, every sequence") struct OptimisticLayersExhaustiveTests {
  private enum Step: CaseIterable {
    case edit, succeedFirst, succeedLast, failFirst, failLast
    case beginRun, landOldest, landNewest, yieldOldest, cancelOldest, push, staleRendering
  }

  private struct Walk {
    private struct Edit {
      let id = OperationTaskID.next()
      let number: Int
      /// As which it was settled.
      var settlement: Int?
    }

    private struct Run {
      /// How many edits had been settled when it began.
      let settlements: Int
      var hasYielded = false
      /// What was there before it yielded, as long as nothing else has come since.
      var before: Before?
    }

    private struct Before {
      let value: [Int]
      let askedAt: Int
      let base: [Int]
      let idsInBase: Set<OperationTaskID>
    }

    private var layers = OptimisticLayers<[Int]>(base: [])
    private var value: [Int] = []
    /// How many edits had been settled when the value was asked for.
    private var askedAt = 0
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
        give([100 + next], askedAt: run.settlements)
        layers.runEnded()
      case .yieldOldest, .cancelOldest:
        guard !runs.isEmpty else { return false }
        if step == .yieldOldest { yieldOldest() } else { cancelOldest() }
      case .push: give([next], askedAt: settlements)
      case .staleRendering:
        guard layers.needsComputation || !layers.isEmpty else { return false }
        var computation = layers.computation(oldest: oldest)
        computation.perform()
        edits.append(Edit(number: next))
        layers.append(edits[edits.count - 1].id) { [next] in $0.append(next) }
        try mustHold(layers.finish(&computation) == nil, "a rendering that is out of date counts")
      }
      try render()
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
        try mustHold(removed != nil, "a layer that fails is given back")
      }
      try render()
      return true
    }

    private mutating func yieldOldest() {
      let isFirst = !runs[0].hasYielded
      let earlier = isFirst ? present : runs[0].before
      give([200 + next], askedAt: runs[0].settlements)
      runs[0].before = earlier
      runs[0].hasYielded = true
    }

    private var present: Before {
      Before(
        value: value, askedAt: askedAt, base: layers.base, idsInBase: layers.idsInBase)
    }

    private mutating func cancelOldest() {
      let run = runs.removeFirst()
      layers.runEnded()
      guard let before = run.before else { return }
      for index in runs.indices { runs[index].before = nil }
      (value, askedAt) = (before.value, before.askedAt)
      layers.restore(before.base, idsInBase: before.idsInBase)
    }

    private mutating func give(_ new: [Int], askedAt moment: Int) {
      (value, askedAt) = (new, moment)
      for index in runs.indices { runs[index].before = nil }
      layers.land(new, after: moment, isWhole: true)
    }

    private var oldest: Int {
      if runs.contains(where: \.hasYielded) { return -1 }
      return runs.map(\.settlements).min() ?? .max
    }

    private mutating func render() throws {
      guard layers.needsComputation else { return try check(confirmed: nil) }
      var computation = layers.computation(oldest: oldest)
      computation.perform()
      try mustHold(layers.finish(&computation) != nil, "a rendering of the present counts")
      try mustHold(!layers.needsComputation, "it is done")
      try check(confirmed: computation.confirmed)
    }

    private func check(confirmed: [Int]?) throws {
      let missing = edits.filter { $0.settlement.map { $0 > askedAt } ?? true }
      let expected = value + missing.map(\.number)
      try mustHold(
        layers.displayed == expected, "\(expected) is shown, and not \(layers.displayed)")
      let settled = value + missing.filter { $0.settlement != nil }.map(\.number)
      if let confirmed { try mustHold(confirmed == settled, "\(settled) is confirmed") }
      let pending = edits.count { $0.settlement == nil }
      try mustHold(layers.pendingCount == pending, "\(pending) are under way")
      // A settled layer is kept only for a run that began before, or behind one that is pending.
      if pending == 0, oldest >= settlements {
        try mustHold(layers.isEmpty, "a layer is kept for nothing")
      }
    }
  }

  @Test("What is shown is what the server gave and every edit that it does not have yet")
  func everySequence() {
    exhaust("OptimisticLayers", events: Step.allCases, length: 6, from: Walk()) {
      walk, step in try walk.take(step)
    }
  }
}
