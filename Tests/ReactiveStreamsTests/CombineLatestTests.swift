import Testing

@testable import ReactiveStreams

@Suite("combineLatest")
struct CombineLatestTests {
  @Test(
    "The last pair has the newest elements of both sides after concurrent sends",
    arguments: 0..<200)
  func lastPair(round: Int) {
    let first = StateCell(0)
    let second = StateCell(0)
    let seen = Recorder<[Int]>()
    let subscription = first.source.combineLatest(second.source).subscribe { signal in
      if let pair = signal.element { seen.record([pair.0, pair.1]) }
    }
    let ended = onThreads(2) { thread in
      for number in 1...50 { (thread == 0 ? first : second).set(number) }
    }
    #expect(ended)
    let pairs = seen.elements
    #expect(pairs.count == 101)
    #expect(pairs.last == [50, 50])
    for (before, after) in zip(pairs, pairs.dropFirst()) {
      #expect(before[0] <= after[0] && before[1] <= after[1])
    }
    subscription.cancel()
    #expect(first.subscriberCount == 0)
    #expect(second.subscriberCount == 0)
  }

  @Test("A handler may change both sides")
  func reentrant() {
    let first = StateCell(0)
    let second = StateCell(0)
    let seen = Recorder<[Int]>()
    let subscription = first.source.combineLatest(second.source).subscribe { signal in
      guard let pair = signal.element else { return }
      seen.record([pair.0, pair.1])
      if pair.0 < 3 { first.set(pair.0 + 1) } else if pair.1 < 2 { second.set(pair.1 + 1) }
    }
    #expect(seen.elements == [[0, 0], [1, 0], [2, 0], [3, 0], [3, 1], [3, 2]])
    subscription.cancel()
  }

  @Test("A handler that cancels does not receive queued elements")
  func cancelInHandler() {
    let first = StateCell(0)
    let second = StateCell(0)
    let seen = Recorder<Int>()
    let box = Box<OperationSubscription?>(nil)
    box.exchange(
      first.source.combineLatest(second.source).subscribe { signal in
        guard let pair = signal.element else { return }
        seen.record(pair.0)
        // The other thread queues its pair for this one, and returns.
        if pair.0 == 1 { #expect(onThread { second.set(1) }.wait()) }
        if pair.0 == 1 { box.cancel() }
      })
    first.set(1)
    #expect(seen.elements == [0, 1])
  }

  @Test("A replaced element is released with no lock held")
  func releasedWithoutLock() {
    let first = Broadcast<DeinitAction>()
    let second = StateCell(0)
    let seen = Recorder<Int>()
    let subscription = first.values.source.combineLatest(second.source).subscribe { signal in
      if let pair = signal.element { seen.record(pair.1) }
    }
    first.send(DeinitAction { second.set(1) })
    let ended = onThread { first.send(DeinitAction {}) }
    #expect(ended.wait())
    #expect(second.subscriberCount == 1)
    #expect(seen.elements == [0, 0, 1])
    subscription.cancel()
  }

  @Test("An operator releases everything with its subscription")
  func memory() {
    let live = LiveCount()
    let first = StateCell(0)
    let second = Broadcast<Counted>()
    do {
      let held = Counted(in: live)
      let source = first.source.combineLatest(second.values.source)
      let subscription = source.subscribe { _ in _ = held }
      second.send(Counted(in: live))
      second.send(Counted(in: live))
      #expect(live.now == 2)
      subscription.cancel()
    }
    #expect(live.now == 0)
  }
}
