import Testing

@testable import Operation

/// The waiters and the outputs of the machine are numbers here.
@Suite("TaskMachine") struct TaskMachineTests {
  typealias Machine = TaskMachine<Int, Int>

  private static let task = Task<Void, Never> {}
  private let one = OperationTaskID.next()
  private let other = OperationTaskID.next()

  private static func machine(_ events: (inout Machine) -> Void...) -> Machine {
    var machine = Machine()
    for event in events { event(&machine) }
    return machine
  }

  private static let scheduled = machine()
  private static let launching = machine { _ = $0.start() }
  private static let running = machine({ _ = $0.start() }, { _ = $0.attach(task) })
  private static let ended = machine({ _ = $0.start() }, { _ = $0.end(with: 1) })
  private static let all = [scheduled, launching, running, ended]

  @Test("A task that is attached later has the priority of a caller that joined before the start")
  func earlyPriority() {
    var machine = Self.scheduled
    #expect(machine.escalate(to: .high) == nil)
    #expect(machine.start() && !machine.attach(Self.task))
    #expect(machine.requestedPriority == TaskPriority.high.rawValue)
    #expect(machine.escalate(to: .low) == Self.task)
    #expect(machine.requestedPriority == TaskPriority.high.rawValue)
  }

  @Test("A task is started once, and not after its end", arguments: [0, 1, 2, 3])
  func start(state: Int) {
    var machine = Self.all[state]
    #expect(machine.start() == (state == 0))
    #expect(machine.start() == false)
    #expect(machine.progress.hasStarted)
  }

  @Test("An attached Swift task is retained while the task runs", arguments: [0, 1, 2, 3])
  func attach(state: Int) {
    var machine = Self.all[state]
    #expect(machine.attach(Self.task) == false)
    let cancelled = machine.cancel(with: 2).cancelled
    #expect((cancelled == Self.task) == (state == 1 || state == 2))
  }

  @Test(
    "A Swift task that is attached after the cancellation is cancelled at once", arguments: [0, 1])
  func attachLate(hasOutput: Int) {
    var machine = Self.launching
    #expect(machine.cancel(with: hasOutput == 1 ? 5 : nil).cancelled == nil)
    #expect(machine.attach(Self.task) == true)
  }

  @Test(
    "A cancellation with an output ends the task, unless it has ended", arguments: [0, 1, 2, 3])
  func cancelWithOutput(state: Int) {
    var machine = Self.all[state]
    let isOver = machine.progress.isEnded
    _ = machine.wait(one, waiter: 7)
    #expect(machine.cancel(with: 2).resumed.elements == (isOver ? [] : [7]))
    #expect(machine.output == (isOver ? 1 : 2))
    #expect(machine.progress.isCancelled == !isOver)
    #expect(machine.cancel(with: 3).resumed.elements == [])
    #expect(machine.output == (isOver ? 1 : 2))
    #expect(machine.end(with: 4).elements == [])
  }

  @Test("A cancellation without an output does not resume the waiters", arguments: [0, 1, 2, 3])
  func cancelWithoutOutput(state: Int) {
    var machine = Self.all[state]
    let isOver = machine.progress.isEnded
    _ = machine.wait(one, waiter: 7)
    #expect(machine.cancel(with: nil).resumed.elements == [])
    #expect(machine.progress.isEnded == isOver)
    #expect(machine.progress.isCancelled == !isOver)
    #expect(machine.end(with: 4).elements == (isOver ? [] : [7]))
    #expect(machine.output == (isOver ? 1 : 4))
  }

  @Test("The end resumes every waiter once", arguments: [0, 1, 2, 3])
  func end(state: Int) {
    var machine = Self.all[state]
    let isOver = machine.progress.isEnded
    _ = machine.wait(one, waiter: 7)
    _ = machine.wait(other, waiter: 8)
    #expect(machine.waiters.count == (isOver ? 0 : 2))
    #expect(machine.end(with: 4).elements.sorted() == (isOver ? [] : [7, 8]))
    #expect(machine.end(with: 5).elements == [])
    #expect(machine.output == (isOver ? 1 : 4))
    #expect(machine.waiters.count == 0)
  }

  @Test("A waiter suspends before the end, and gets the output after it", arguments: 0...3)
  func wait(state: Int) {
    var machine = Self.all[state]
    #expect(machine.wait(one, waiter: 7) == (state < 3 ? nil : 1))
    #expect(machine.waiters.count == (state < 3 ? 1 : 0))
  }

  @Test("A wait that has not begun cannot be cancelled", arguments: 0...3)
  func cancelEarly(state: Int) {
    var machine = Self.all[state]
    #expect(machine.cancelWait(one) == nil)
    #expect(machine.wait(one, waiter: 7) == (state < 3 ? nil : 1))
  }

  @Test(
    "A wait that is cancelled after its beginning ends, and the others continue", arguments: 0...2)
  func cancelWait(state: Int) {
    var machine = Self.all[state]
    _ = machine.wait(one, waiter: 7)
    _ = machine.wait(other, waiter: 8)
    #expect(machine.cancelWait(one) == 7)
    #expect(machine.cancelWait(one) == nil)
    #expect(machine.end(with: 4).elements == [8])
    #expect(machine.cancelWait(other) == nil)
  }
}

@Suite("TaskMachine, every short sequence") struct TaskMachineSequenceTests {
  private enum Event: CaseIterable {
    case start, attach, cancelWithOutput, cancel, end, wait, waitOther, cancelWait
  }

  /// The effects of a sequence of events so far.
  private struct Trace {
    var machine = TaskMachine<Int, Int>()
    var starts = 0
    var suspended: [Int: Int] = [:]
    var resumed: [Int: Int] = [:]
    var output: Int?
    var events: [Event] = []
  }

  private static let task = Task<Void, Never> {}
  private static let ids = (OperationTaskID.next(), OperationTaskID.next())

  private func apply(_ event: Event, to trace: inout Trace) {
    trace.events.append(event)
    var resumed: [Int] = []
    switch event {
    case .start: trace.starts += trace.machine.start() ? 1 : 0
    case .attach: _ = trace.machine.attach(Self.task)
    case .cancelWithOutput:
      resumed = trace.machine.cancel(with: trace.events.count).resumed.elements
    case .cancel: resumed = trace.machine.cancel(with: nil).resumed.elements
    case .end: resumed = trace.machine.end(with: trace.events.count).elements
    case .wait: wait(1, Self.ids.0, &trace)
    case .waitOther: wait(2, Self.ids.1, &trace)
    case .cancelWait: resumed = trace.machine.cancelWait(Self.ids.0).map { [$0] } ?? []
    }
    for waiter in resumed { trace.resumed[waiter, default: 0] += 1 }
  }

  private func wait(_ waiter: Int, _ id: OperationTaskID, _ trace: inout Trace) {
    if trace.machine.wait(id, waiter: waiter) == nil { trace.suspended[waiter] = 1 }
  }

  private func isSound(_ trace: Trace) -> Bool {
    let waiting = trace.suspended.keys.filter { trace.resumed[$0] == nil }.count
    return trace.starts <= 1
      && trace.resumed.allSatisfy { $1 == 1 && trace.suspended[$0] != nil }
      && trace.machine.waiters.count == waiting
      && (!trace.machine.progress.isEnded || waiting == 0)
      && (trace.output == nil || trace.machine.output == trace.output)
  }

  @Test("In every sequence of events, no waiter is resumed twice, and none is lost")
  func everySequence() {
    var open = [Trace()]
    var failures: [[Event]] = []
    var count = 0
    while let trace = open.popLast() {
      for event in Event.allCases {
        let isWait = event == .wait || event == .waitOther
        if isWait, trace.events.contains(event) { continue }
        var next = trace
        apply(event, to: &next)
        if !isSound(next) { failures.append(next.events) }
        next.output = next.machine.output
        count += 1
        if next.events.count < 5 { open.append(next) }
      }
    }
    #expect(count > 10_000)
    #expect(failures.isEmpty, "\(failures.prefix(3))")
  }
}
