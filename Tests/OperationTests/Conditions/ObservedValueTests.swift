import ReactiveStreams
import Testing

@testable import Operation

/// A feed that a test speaks through, and that notes when it is started and ended.
private final class Feed: Sendable {
  let log = Recorder<String>()
  private let tells = Recorder<@Sendable (Int) -> Void>()
  let firstWord: Int?

  init(firstWord: Int? = nil) { self.firstWord = firstWord }

  func begin(_ tell: @escaping @Sendable (Int) -> Void) -> OperationSubscription {
    log.append("start")
    tells.append(tell)
    if let firstWord { tell(firstWord) }
    return OperationSubscription { [log] in log.append("end") }
  }

  func say(_ value: Int, inRun run: Int) { tells.all[run](value) }
}

@Suite struct ObservedValueTests {
  private let feed = Feed()
  private let log = Recorder<Int>()

  private func observed(measure: (@Sendable () -> Int)? = nil) -> ObservedValue<Int> {
    ObservedValue(0, measure: measure, feed: { [feed] in feed.begin($0) })
  }

  @Test("Who measures while the feed is started is told where that finds something else")
  func measuredMeanwhile() {
    var machine = ObservedValueMachine(value: 0)
    let heard = Recorder<Int>()
    _ = machine.deliveries.subscribe(Subscriber { heard.append($0) })
    machine.saw(5)
    guard case .start = machine.nextStep() else { return #expect(Bool(false), "no start") }
    machine.saw(1)
    machine.saw(2)
    machine.found(2)
    machine.deliveries.beginDraining()?.perform()
    #expect(heard.all == [2])
    #expect(machine.deliveries.takeNext() == nil)
    machine.saw(2)
    machine.found(2)
    #expect(machine.deliveries.beginDraining() == nil)
  }

  @Test("The feed runs while somebody listens, once for all, and again for the next")
  func runsWhileObserved() {
    let observed = observed()
    let subscriptions = (0..<3).map { _ in observed.subscribe { [log] in log.append($0) } }
    feed.say(1, inRun: 0)
    #expect(feed.log.all == ["start"] && log.all == [1, 1, 1])
    for subscription in subscriptions { subscription.cancel() }
    #expect(feed.log.all == ["start", "end"] && observed.subscriberCount == 0)
    observed.subscribe { _ in }.cancel()
    #expect(feed.log.all == ["start", "end", "start", "end"])
  }

  @Test("What a feed says after its end is not heard") func lateWord() {
    let observed = observed()
    observed.subscribe { _ in }.cancel()
    feed.say(1, inRun: 0)
    #expect(observed.value == 0)
    let subscription = observed.subscribe { [log] in log.append($0) }
    feed.say(2, inRun: 0)
    feed.say(3, inRun: 1)
    #expect(log.all == [3] && observed.value == 3)
    subscription.cancel()
    #expect(observed.value == 3)
  }

  @Test("Only changes are told, unless every word counts") func repeats() {
    for tellsRepeats in [false, true] {
      let observed = ObservedValue(0, tellsRepeats: tellsRepeats)
      let log = Recorder<Int>()
      let subscription = observed.subscribe { log.append($0) }
      for value in [0, 1, 1, 2] { observed.set(value) }
      #expect(log.all == (tellsRepeats ? [0, 1, 1, 2] : [1, 2]))
      subscription.cancel()
    }
  }

  @Test("While nothing feeds it, the value is measured; then it is what was measured and told")
  func measured() {
    let (reality, log) = (Monitor(7), Recorder<Int>())
    let observed = observed(measure: { reality.value })
    #expect(observed.value == 7)
    let subscription = observed.subscribe { log.append($0) }
    reality.update { $0 = 8 }
    #expect(observed.value == 7 && log.all == [])
    feed.say(7, inRun: 0)
    feed.say(9, inRun: 0)
    #expect(observed.value == 9 && log.all == [9])
    subscription.cancel()
    #expect(observed.value == 8)
  }

  @Test("A handler may cancel itself in its call, even when the feed has just begun, and subscribe")
  func reentrant() {
    let feed = Feed(firstWord: 5)
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
    for value in [6, 7] { feed.say(value, inRun: 0) }
    #expect(log.all == ["first 5", "first 6", "next 6", "next 7"])
    #expect(feed.log.all == ["start"])
    others.all[0].cancel()
    #expect(feed.log.all == ["start", "end"] && observed.subscriberCount == 0)
  }

  @Test("Who comes or goes while the feed is started or ended leaves the next step to who does it")
  func steps() {
    var machine = ObservedValueMachine(value: 0)
    let subscriber = Subscriber<Int> { _ in }
    let first = machine.deliveries.subscribe(subscriber)
    guard case .start(let run) = machine.nextStep() else { return #expect(Bool(false)) }
    #expect(machine.nextStep() == nil && !machine.isFed)
    _ = machine.deliveries.unsubscribe(first)
    #expect(machine.nextStep() == nil)
    machine.hear(1, from: run)
    machine.started(.empty)
    #expect(machine.value == 1 && machine.isFed)
    guard case .end = machine.nextStep() else { return #expect(Bool(false)) }
    machine.hear(2, from: run)
    let second = machine.deliveries.subscribe(subscriber)
    #expect(machine.nextStep() == nil && machine.value == 1 && !machine.isFed)
    machine.ended()
    guard case .start(let next) = machine.nextStep() else { return #expect(Bool(false)) }
    machine.started(.empty)
    #expect(next != run && machine.nextStep() == nil)
    _ = machine.deliveries.unsubscribe(second)
    guard case .end = machine.nextStep() else { return #expect(Bool(false)) }
  }

  @Test("Threads that come and go leave a feed that is ended as often as it was started")
  func threads() async {
    let observed = observed()
    await withWatchdog({ "subscribing and cancelling" }) {
      await onThreads(4) { _ in
        for _ in 0..<500 { observed.subscribe { _ in }.cancel() }
      }
    }
    let log = feed.log.all
    #expect(observed.subscriberCount == 0)
    // One at a time: they alternate, and the last one is an end.
    #expect(log.count.isMultiple(of: 2) && log.last == "end")
    #expect(log.enumerated().allSatisfy { $1 == ($0.isMultiple(of: 2) ? "start" : "end") })
  }

  @Test("Ten thousand subscriptions leave nothing behind, and a subscription keeps its source")
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
