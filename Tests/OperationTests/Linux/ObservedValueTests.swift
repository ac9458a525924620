import ReactiveStreams
import TestSupport
import Testing

@testable import Operation

/// A feed that a test drives, and that records when it is started and ended.
private final class Feed: Sendable {
  let log = Recorder<String>()
  private let notifiers = Recorder<@Sendable (Int) -> Void>()
  private let firstReport: @Sendable () -> Int?

  /// - Parameter firstReport: Returns the value that the feed reports before it has started.
  init(firstReport: @escaping @Sendable () -> Int? = { nil }) { self.firstReport = firstReport }

  func begin(_ notify: @escaping @Sendable (Int) -> Void) -> OperationSubscription {
    log.append("start")
    notifiers.append(notify)
    if let value = firstReport() { notify(value) }
    return OperationSubscription { [log] in log.append("end") }
  }

  func report(_ value: Int, inRun run: Int) { notifiers.all[run](value) }
}

@Suite struct ObservedValueTests {
  private let feed = Feed()
  private let log = Recorder<Int>()

  private func observed() -> ObservedValue<Int> {
    ObservedValue(0, feed: { [feed] in feed.begin($0) })
  }

  @Test("The feed runs while there are subscribers, once for all, and again for the next one")
  func runsWhileObserved() {
    let observed = observed()
    let subscriptions = (0..<3).map { _ in observed.subscribe { [log] in log.append($0) } }
    feed.report(1, inRun: 0)
    #expect(feed.log.all == ["start"] && log.all == [1, 1, 1])
    for subscription in subscriptions { subscription.cancel() }
    #expect(feed.log.all == ["start", "end"] && observed.subscriberCount == 0)
    observed.subscribe { _ in }.cancel()
    #expect(feed.log.all == ["start", "end", "start", "end"])
  }

  @Test("A report after the end of the feed is ignored") func lateReport() {
    let observed = observed()
    observed.subscribe { _ in }.cancel()
    feed.report(1, inRun: 0)
    #expect(observed.value == 0)
    let subscription = observed.subscribe { [log] in log.append($0) }
    feed.report(2, inRun: 0)
    feed.report(3, inRun: 1)
    #expect(log.all == [3] && observed.value == 3)
    subscription.cancel()
    #expect(observed.value == 3)
  }

  @Test("Subscribers are notified of changes, and of repeats if the value notifies of them")
  func repeats() {
    for notifiesRepeats in [false, true] {
      let observed = ObservedValue(0, notifiesRepeats: notifiesRepeats)
      let log = Recorder<Int>()
      let subscription = observed.subscribe { log.append($0) }
      for value in [0, 1, 1, 2] { observed.set(value) }
      #expect(log.all == (notifiesRepeats ? [0, 1, 1, 2] : [1, 2]))
      subscription.cancel()
    }
  }

  @Test("Without a feed each read measures the value, and with a feed it is the last report")
  func measured() {
    let (world, log) = (Monitor(7), Recorder<Int>())
    let feed = Feed { world.value }
    let observed = ObservedValue(measure: { world.value }, feed: { feed.begin($0) })
    #expect(observed.value == 7)
    let subscription = observed.subscribe { log.append($0) }
    world.update { $0 = 8 }
    #expect(observed.value == 7 && log.all == [])
    feed.report(7, inRun: 0)
    feed.report(9, inRun: 0)
    #expect(observed.value == 9 && log.all == [9])
    subscription.cancel()
    #expect(observed.value == 8)
  }

  @Test("A subscriber that reads while the feed starts is notified of another first report")
  func readDuringStart() {
    let (world, log) = (Monitor(1), Recorder<Int>())
    let observed = Monitor<ObservedValue<Int>?>(nil)
    let feed = Feed {
      #expect(observed.value?.value == 1)
      world.update { $0 = 2 }
      return 2
    }
    let value = ObservedValue(measure: { world.value }, feed: { feed.begin($0) })
    observed.update { $0 = value }
    let subscription = value.subscribe { log.append($0) }
    #expect(log.all == [2] && value.value == 2)
    subscription.cancel()
    observed.update { $0 = nil }
  }

  @Test("A handler may cancel itself in its call, also when the feed has just begun, and subscribe")
  func reentrant() {
    let feed = Feed { 5 }
    let observed = ObservedValue<Int>(0, feed: { feed.begin($0) })
    let own = Monitor(OperationSubscription.empty)
    let others = Recorder<OperationSubscription>()
    let log = Recorder<String>()
    let subscription = observed.subscribe { value in
      log.append("first \(value)")
      own.value.cancel()
      if others.count == 0 { others.append(observed.subscribe { log.append("next \($0)") }) }
    }
    own.update { $0 = subscription }
    #expect(log.all == ["first 5"])
    for value in [6, 7] { feed.report(value, inRun: 0) }
    #expect(log.all == ["first 5", "first 6", "next 6", "next 7"])
    #expect(feed.log.all == ["start"])
    others.all[0].cancel()
    #expect(feed.log.all == ["start", "end"] && observed.subscriberCount == 0)
  }

  @Test(
    "A subscriber that comes while the feed ends starts it again, also if it leaves during the start",
    arguments: [false, true])
  func changeMeanwhile(leavesDuringStart: Bool) {
    let (log, later) = (Recorder<String>(), Recorder<OperationSubscription>())
    let held = Monitor<ObservedValue<Int>?>(nil)
    let observed = ObservedValue<Int>(
      0,
      feed: { _ in
        log.append("start")
        if leavesDuringStart { later.all.first?.cancel() }
        return OperationSubscription {
          log.append("end")
          if later.count == 0 { held.value.map { later.append($0.subscribe { _ in }) } }
        }
      })
    held.update { $0 = observed }
    observed.subscribe { _ in }.cancel()
    #expect(observed.subscriberCount == (leavesDuringStart ? 0 : 1))
    if !leavesDuringStart {
      #expect(log.all == ["start", "end", "start"])
      later.all[0].cancel()
    }
    #expect(log.all == ["start", "end", "start", "end"])
    held.update { $0 = nil }
  }

  @Test("With threads that subscribe and cancel, the feed starts and ends equally often")
  func threads() async {
    let observed = observed()
    await withWatchdog({ "subscribing and cancelling" }) {
      await onThreads(4) { _ in
        for _ in 0..<500 { observed.subscribe { _ in }.cancel() }
      }
    }
    let log = feed.log.all
    #expect(observed.subscriberCount == 0)
    // Starts and ends alternate, and the last one is an end.
    #expect(log.count.isMultiple(of: 2) && log.last == "end")
    #expect(log.enumerated().allSatisfy { $1 == ($0.isMultiple(of: 2) ? "start" : "end") })
  }

  @Test("Ten thousand subscriptions leave no object, and a subscription retains its source")
  func leavesNothing() {
    let live = LiveCount()
    weak var source: ObservedValue<Int>?
    do {
      let observed = observed()
      source = observed
      for _ in 0..<10_000 {
        let probe = live.makeProbe()
        observed.subscribe { _ in withExtendedLifetime(probe) {} }.cancel()
      }
      #expect(live.value == 0)
      let probe = live.makeProbe()
      let subscription = observed.subscribe { _ in withExtendedLifetime(probe) {} }
      #expect(live.value == 1)
      withExtendedLifetime(subscription) {}
    }
    #expect(source == nil && live.value == 0)
    #expect(feed.log.all.count == 20_002)
  }
}

@Suite("ObservedValueMachine") struct ObservedValueMachineTests {
  private var machine = ObservedValueMachine<Int>()
  private let subscriber = Subscriber<Int> { _ in }

  @Test("A run begins for the first subscriber, and the next one has another number")
  mutating func runs() throws {
    #expect(machine.value == nil && machine.runToStart == nil)
    let ids = (0..<2).map { _ in machine.deliveries.subscribe(subscriber) }
    let run = try #require(machine.runToStart)
    machine.set(1, fromRun: run)
    #expect(machine.value == 1 && machine.deliveries.pendingCount == 0)
    for id in ids {
      let hasEnded = machine.endRun()
      #expect(!hasEnded && machine.value == 1)
      _ = machine.deliveries.unsubscribe(id)
    }
    let hasEnded = machine.endRun()
    #expect(hasEnded && machine.value == nil)
    machine.set(2, fromRun: run)
    #expect(machine.value == nil && machine.runToStart == nil)
    _ = machine.deliveries.subscribe(subscriber)
    #expect(try #require(machine.runToStart) != run)
  }

  @Test("Only changes are queued, and only from the current run") mutating func changes() throws {
    _ = machine.deliveries.subscribe(subscriber)
    let run = try #require(machine.runToStart)
    for value in [1, 1, 2, 2, 1] { machine.set(value, fromRun: run) }
    #expect(machine.deliveries.pendingCount == 2 && machine.value == 1)
    machine.set(3, fromRun: run + 1)
    #expect(machine.deliveries.pendingCount == 2 && machine.value == 1)
  }

  @Test("A report is a change if it differs from one that a subscriber may have read")
  mutating func reads() throws {
    let notified = Recorder<Int>()
    #expect(machine.read(9) == 9)
    _ = machine.deliveries.subscribe(Subscriber { notified.append($0) })
    #expect(machine.read(5) == 5)
    let run = try #require(machine.runToStart)
    #expect(machine.read(1) == 1 && machine.read(2) == 2)
    machine.set(2, fromRun: run)
    machine.deliveries.deliver()
    #expect(notified.all == [2])
    #expect(machine.read(7) == 2)
    machine.set(2, fromRun: run)
    #expect(!machine.deliveries.beginDraining().hasEvent)
    machine.set(3, fromRun: run)
    #expect(machine.deliveries.pendingCount == 1)
  }

  @Test("A measurement while the feed ends is compared with the first report of the next run")
  mutating func readDuringEnd() throws {
    let first = machine.deliveries.subscribe(subscriber)
    machine.set(1, fromRun: try #require(machine.runToStart))
    _ = machine.deliveries.unsubscribe(first)
    let hasEnded = machine.endRun()
    #expect(hasEnded && machine.read(4) == 4)
    _ = machine.deliveries.subscribe(subscriber)
    #expect(machine.read(2) == 2)
    machine.forgetMeasured()
    machine.set(3, fromRun: try #require(machine.runToStart))
    #expect(machine.deliveries.pendingCount == 1)
  }

  @Test("What was measured in a run without a report is forgotten when its feed has ended")
  mutating func endWithoutReport() throws {
    let first = machine.deliveries.subscribe(subscriber)
    #expect(machine.read(4) == 4)
    _ = machine.deliveries.unsubscribe(first)
    let hasEnded = machine.endRun()
    #expect(hasEnded)
    machine.forgetMeasured()
    _ = machine.deliveries.subscribe(subscriber)
    machine.set(5, fromRun: try #require(machine.runToStart))
    #expect(machine.value == 5 && machine.deliveries.pendingCount == 0)
  }
}
