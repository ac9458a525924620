import ReactiveStreams
import TestSupport
import Testing

@testable import Operation

/// One batch is in flight at a time, with at most two keys, in the order of their requests. Every waiter
/// continues exactly once. While keys wait, a delay or a batch is in progress.
@Suite("BatchMachine, every sequence") struct BatchMachineExhaustiveTests {
  private enum Step {
    case add(Int), cancel(Int), delayIsOver, setTask, end
  }

  private struct Walk {
    private static let tasks = (0...4).map { _ in Task {} }

    let ids = (0..<4).map { _ in OperationTaskID.next() }
    private var machine = BatchMachine<Int, Int>(maxSize: 2)
    private var added: Set<Int> = []
    /// The waiters that have not continued: those that are collected, and those of the batch.
    private var pending: [Int] = []
    private var batch: [Int]?
    /// The keys of the batch, also those whose waiters were cancelled.
    private var keys: [Int] = []
    private var number = 0
    /// The task of the batch, and whether the machine has it.
    private var task: Task<Void, Never>?
    private var isTaskSet = false
    private var delay: LateSubscription?
    private var timer: LateSubscription?

    /// The first two wait for one key.
    private func key(_ waiter: Int) -> Int { max(waiter - 1, 0) }

    mutating func take(_ step: Step) throws -> Bool {
      switch step {
      case .add(let waiter):
        guard added.insert(waiter).inserted else { return false }
        pending.append(waiter)
        try perform(machine.add(key(waiter), ids[waiter], waiter))
      case .cancel(let waiter):
        guard added.contains(waiter) else { return false }
        let isWaiting = pending.contains(waiter) || batch?.contains(waiter) == true
        let isInBatch = batch?.contains(waiter) == true
        pending.removeAll { $0 == waiter }
        batch?.removeAll { $0 == waiter }
        let (cancelled, abandoned, _) = machine.cancel(ids[waiter], of: key(waiter))
        try mustHold(cancelled == (isWaiting ? waiter : nil), "a waiter continues once")
        try mustHold(
          abandoned == (isInBatch && batch == [] && isTaskSet ? task : nil),
          "the task of a batch without waiters is cancelled")
      case .delayIsOver:
        guard let delay else { return false }
        self.delay = nil
        try perform(machine.delayIsOver(delay))
      case .setTask:
        guard let task, !isTaskSet else { return false }
        isTaskSet = true
        try mustHold(
          machine.setTask(task, of: number) == (batch == []),
          "the task of a batch is cancelled if its waiters are, and only while it is in flight")
      case .end:
        guard let batch else { return false }
        self.batch = nil
        let (entries, next) = machine.end()
        let waitedFor = keys.filter { key in batch.contains { self.key($0) == key } }
        try mustHold(entries.map(\.id) == waitedFor, "the batch has its keys with waiters")
        let waiters = entries.flatMap { $0.waiters.elements }
        try mustHold(waiters.sorted() == batch.sorted(), "all waiters of the batch continue")
        try perform(next)
      }
      try mustHold(
        pending.isEmpty || delay != nil || batch != nil, "keys wait for a delay or a batch")
      try mustHold(
        Set(pending.map(key)).count < 2 || batch != nil, "a full batch waits only for another one")
      let ended = pending.isEmpty ? timer.take() : nil
      try mustHold(machine.takeTimer() === ended, "a delay ends with the last key that waits")
      return true
    }

    private mutating func perform(_ action: BatchMachine<Int, Int>.Action) throws {
      switch action {
      case .none: break
      case .startDelay(let new):
        try mustHold(timer == nil, "one delay is in progress")
        (delay, timer) = (new, new)
      case .load(let keys, let number):
        try mustHold(batch == nil, "one batch is in flight")
        try mustHold((1...2).contains(keys.count), "a batch has one or two keys")
        self.keys = keys
        try mustHold(!machine.setTask(Self.tasks[0], of: self.number), "an earlier batch has ended")
        self.number = number
        task = Self.tasks[number]
        isTaskSet = false
        let loaded = pending.filter { keys.contains(key($0)) }
        try mustHold(Set(loaded.map(key)) == Set(keys), "a key without a waiter is not loaded")
        batch = loaded
        pending.removeAll { loaded.contains($0) }
      }
    }
  }

  @Test("Every waiter continues once, in one batch at a time") func sequences() {
    let events: [Step] =
      (0..<4).map { .add($0) } + [0, 1, 3].map { .cancel($0) } + [.delayIsOver, .setTask, .end]
    exhaust("Batches", events: events, length: 8, from: Walk()) { try $0.take($1) }
  }
}
