import Testing

@testable import ReactiveStreams

extension StateStream {
  fileprivate func timed(_ rule: StreamTimingRule, _ timer: ManualTimer) -> StateStream {
    StateStream(source.timed(rule, timer.schedule))
  }
}

extension StreamSource {
  fileprivate func timed(
    _ rule: StreamTimingRule, _ timer: @escaping StreamTimer
  ) -> StreamSource {
    timed(rule, for: .seconds(1), timer: timer)
  }
}

@Suite("debounce and throttle")
struct StreamTimingTests {
  private static let rules = [StreamTimingRule.debounce, .throttle]

  private let executor = ManualExecutor()
  private let timer = ManualTimer()
  private let cell = StateCell(0)
  private let read = Recorder<Int>()

  @Test("A reader of a debounced stream reads a state after the duration")
  func debounce() {
    let task = executor.read(cell.stream.timed(.debounce, timer), into: read)
    executor.run()
    cell.set(1)
    executor.run()
    #expect(read.elements == [])
    timer.advance(by: .seconds(1))
    executor.run()
    #expect(read.elements == [1])
    cell.set(2)
    cell.finish()
    executor.run()
    #expect(read.elements == [1, 2])
    #expect(timer.pendingCount == 0)
    task.cancel()
  }

  @Test("A reader of a throttled stream reads the first state, and later the newest")
  func throttle() {
    let task = executor.read(cell.stream.timed(.throttle, timer), into: read)
    executor.run()
    for state in 1...3 { cell.set(state) }
    executor.run()
    #expect(read.elements == [0])
    timer.advance(by: .seconds(1))
    executor.run()
    #expect(read.elements == [0, 3])
    cell.finish()
    executor.run()
    #expect(timer.pendingCount == 0)
    task.cancel()
  }

  @Test("A slow reader reads the newest state", arguments: rules)
  func slowReader(rule: StreamTimingRule) async {
    var iterator = cell.stream.timed(rule, timer).makeAsyncIterator()
    for state in 1...5 {
      cell.set(state)
      timer.advance(by: .seconds(1))
    }
    #expect(timer.pendingCount == (rule == .throttle ? 1 : 0))
    cell.finish()
    #expect(await iterator.next() == 5)
    #expect(await iterator.next() == nil)
  }

  @Test("The timer starts with an iterator, and ends with it", arguments: rules)
  func lifetime(rule: StreamTimingRule) {
    let stream = cell.stream.timed(rule, timer)
    #expect(timer.startCount == 0)
    var iterators = [stream.makeAsyncIterator(), stream.makeAsyncIterator()]
    cell.set(1)
    #expect(timer.pendingCount == 2)
    iterators.removeLast()
    #expect(timer.pendingCount == 1)
    #expect(cell.subscriberCount == 1)
    iterators.removeLast()
    #expect(timer.pendingCount == 0)
    #expect(cell.subscriberCount == 0)
  }

  @Test("A cancelled read ends the timer at once", arguments: rules)
  func cancellation(rule: StreamTimingRule) {
    let task = executor.read(cell.stream.timed(rule, timer), into: read)
    executor.run()
    cell.set(1)
    #expect(timer.pendingCount == 1)
    task.cancel()
    #expect(timer.pendingCount == 0)
    #expect(cell.subscriberCount == 0)
    executor.run()
    #expect(read.elements == (rule == .throttle ? [0] : []))
  }

  @Test("A pending element of a stream that flatMapLatest replaced is not read", arguments: rules)
  func epochs(rule: StreamTimingRule) {
    let outer = StateCell(0)
    let inners = [StateCell(10), StateCell<Int>()]
    let stream = outer.stream.flatMapLatest { inners[$0].stream }.timed(rule, timer)
    let task = executor.read(stream, into: read)
    executor.run()
    inners[0].set(11)
    outer.set(1)
    timer.advance(by: .seconds(1))
    executor.run()
    #expect(read.elements == (rule == .throttle ? [10] : []))
    inners[1].set(20)
    timer.advance(by: .seconds(1))
    executor.run()
    #expect(read.elements.last == 20)
    #expect(!read.elements.contains(11))
    task.cancel()
    executor.run()
  }

  @Test("A timer that calls its action before it returns is ended at once", arguments: rules)
  func immediateTimer(rule: StreamTimingRule) {
    let (ended, timers) = (Box(0), Recorder<OperationSubscription>())
    let source = cell.source.timed(rule) { _, action in
      action()
      let timer = OperationSubscription { ended.increment() }
      timers.record(timer)
      return timer
    }
    let subscription = source.subscribe { [read] signal in
      if let element = signal.element { read.record(element) }
    }
    cell.set(1)
    #expect(read.elements == [0, 1])
    #expect(ended.value == 2)
    subscription.cancel()
  }

  @Test("A handler may send and cancel", arguments: rules)
  func reentrant(rule: StreamTimingRule) {
    let box = Box<OperationSubscription?>(nil)
    box.exchange(
      cell.source.timed(rule, timer.schedule).subscribe { [cell, read] signal in
        guard let element = signal.element else { return }
        read.record(element)
        if element < 2 { cell.set(element + 1) } else { box.cancel() }
      })
    for _ in 0..<4 { timer.advance(by: .seconds(1)) }
    #expect(read.elements == [0, 1, 2])
    #expect(timer.pendingCount == 0)
    #expect(cell.subscriberCount == 0)
  }

  @Test(
    "A timer that has fired ends after the delivery, also if its clock keeps it", arguments: rules)
  func timerEndsLate(rule: StreamTimingRule) {
    let pending = Box<(@Sendable () -> Void)?>(nil)
    let timers = Recorder<OperationSubscription>()
    let order = Recorder<String>()
    let broadcast = Broadcast<Int>()
    let source = broadcast.values.source.timed(rule) { _, action in
      let timer = OperationSubscription { order.record("timer ended") }
      timers.record(timer)
      pending.exchange(action)
      return timer
    }
    let subscription = source.subscribe { order.record($0.element.map(String.init) ?? "end") }
    broadcast.send(1)
    if rule == .throttle { broadcast.send(2) }
    pending.exchange(nil)?()
    #expect(order.elements == (rule == .throttle ? ["1", "2"] : ["1"]) + ["timer ended"])
    subscription.cancel()
    // The action of a throttle's next timer retains the owner of the box.
    pending.exchange(nil)
  }

  @Test("A replaced and a dropped element are released with no lock held", arguments: rules)
  func releasedWithoutLock(rule: StreamTimingRule) {
    let broadcast = Broadcast<DeinitAction>()
    let released = Box(0)
    let source = broadcast.values.source.timed(rule, timer.schedule)
    let box = Box<OperationSubscription?>(nil)
    box.exchange(source.subscribe { _ in })
    let done = onThread {
      for _ in 0..<3 {
        broadcast.send(
          DeinitAction {
            released.increment()
            // Takes the lock of the operator.
            if released.value == 2 { broadcast.send(DeinitAction { released.increment() }) }
          })
      }
      box.cancel()
    }
    #expect(done.wait())
    #expect(released.value == 4)
  }

  @Test("An operator releases everything with its subscription", arguments: rules)
  func memory(rule: StreamTimingRule) {
    let live = LiveCount()
    let broadcast = Broadcast<Counted>()
    do {
      let held = Counted(in: live)
      let source = broadcast.values.source.timed(rule, timer.schedule)
      let subscription = source.subscribe { _ in _ = held }
      for _ in 0..<3 { broadcast.send(Counted(in: live)) }
      #expect(live.now == 2)
      #expect(timer.pendingCount == 1)
      subscription.cancel()
    }
    #expect(live.now == 0)
    #expect(timer.pendingCount == 0)
  }
}

@Suite("debounce and throttle, races")
struct StreamTimingRaceTests {
  @Test(
    "Elements keep their order, and the last one is delivered, while timers fire",
    arguments: [StreamTimingRule.debounce, .throttle], 0..<150)
  func order(rule: StreamTimingRule, round: Int) {
    let timer = ManualTimer()
    let broadcast = Broadcast<Int>()
    let seen = Recorder<Int?>()
    let subscription = broadcast.values.source.timed(rule, timer.schedule)
      .subscribe { seen.record($0.element) }
    let ended = onThreads(3) { thread in
      for number in 1...100 {
        if thread == 0 { broadcast.send(number) } else { timer.advance(by: .seconds(1)) }
      }
      if thread == 0 { broadcast.finish() }
    }
    #expect(ended)
    #expect(seen.elements.last == .some(nil))
    let elements = seen.elements.dropLast().compactMap(\.self)
    #expect(elements.count == seen.count - 1)
    #expect(zip(elements, elements.dropFirst()).allSatisfy { $0 < $1 })
    #expect(elements.last == 100)
    if rule == .throttle { #expect(elements.first == 1) }
    #expect(timer.pendingCount == 0)
    subscription.cancel()
  }

  @Test(
    "A cancel that races with elements and timers leaves no timer and no subscription",
    arguments: [StreamTimingRule.debounce, .throttle], 0..<150)
  func cancel(rule: StreamTimingRule, round: Int) {
    let timer = ManualTimer()
    let cell = StateCell(0)
    let subscription = cell.source.timed(rule, timer.schedule).subscribe { _ in }
    let ended = onThreads(3) { thread in
      switch thread {
      case 0: for number in 0..<10 { cell.set(number) }
      case 1: for _ in 0..<10 { timer.advance(by: .seconds(1)) }
      default: subscription.cancel()
      }
    }
    #expect(ended)
    #expect(cell.subscriberCount == 0)
    #expect(timer.pendingCount == 0)
  }

  @Test(
    "A cancelled task ends its read while elements arrive and timers fire",
    arguments: [StreamTimingRule.debounce, .throttle], 0..<100)
  func reader(rule: StreamTimingRule, round: Int) async {
    let timer = ManualTimer()
    let cell = StateCell(0)
    let stream = cell.stream.timed(rule, timer)
    let task = Task {
      var elements: [Int] = []
      for await element in stream { elements.append(element) }
      return elements
    }
    let writing = onThread {
      for number in 1...50 {
        cell.set(number)
        timer.advance(by: .seconds(1))
        if number == 25 { task.cancel() }
      }
    }
    let elements = await task.value
    writing.wait()
    #expect(elements == elements.sorted())
    #expect(cell.subscriberCount == 0)
    #expect(timer.pendingCount == 0)
  }
}
