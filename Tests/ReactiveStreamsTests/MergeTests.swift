import Testing

@testable import ReactiveStreams

@Suite("merge, and combineLatest of an array")
struct MergeTests {
  @Test(
    "After concurrent sends, merge has all elements, in the order of each side", arguments: 0..<200)
  func concurrentMerge(round: Int) {
    let sides = [Broadcast<[Int]>(), Broadcast<[Int]>()]
    let seen = Recorder<[Int]>()
    let ends = Box(0)
    let subscription = sides[0].values.source.merge(sides[1].values.source).subscribe { signal in
      if let element = signal.element { seen.record(element) } else { ends.increment() }
    }
    let ended = onThreads(2) { side in
      for number in 0..<50 { sides[side].send([side, number]) }
      sides[side].finish()
    }
    #expect(ended)
    for side in 0...1 {
      #expect(seen.elements.filter { $0[0] == side }.map { $0[1] } == Array(0..<50))
    }
    #expect(ends.value == 1)
    subscription.cancel()
  }

  @Test(
    "After concurrent sends, the last array has the newest elements of all streams",
    arguments: 0..<200)
  func concurrentCombination(round: Int) {
    let cells = (0..<3).map { _ in StateCell(0) }
    let seen = Recorder<[Int]>()
    let source = StreamSource.combineLatest(cells.map(\.source))
    let subscription = source.subscribe { if let array = $0.element { seen.record(array) } }
    let ended = onThreads(3) { thread in
      for number in 1...50 { cells[thread].set(number) }
    }
    #expect(ended)
    let arrays = seen.elements
    #expect(arrays.count == 151)
    #expect(arrays.last == [50, 50, 50])
    for (before, after) in zip(arrays, arrays.dropFirst()) {
      #expect(zip(before, after).allSatisfy { $0 <= $1 })
    }
    subscription.cancel()
    #expect(cells.map(\.subscriberCount) == [0, 0, 0])
  }

  @Test("A cancel that races with elements leaves no subscription", arguments: 0..<200)
  func cancelRace(round: Int) {
    let cells = (0..<2).map { _ in StateCell(0) }
    let sources = cells.map(\.source)
    let subscription = StreamSource.combineLatest(sources + [sources[0].merge(sources[1])])
      .subscribe { _ in }
    let ended = onThreads(3) { thread in
      if thread == 2 {
        subscription.cancel()
      } else {
        for number in 0..<5 { cells[thread].set(number) }
      }
    }
    #expect(ended)
    #expect(cells.map(\.subscriberCount) == [0, 0])
  }

  @Test("A handler may change the merged streams")
  func reentrant() {
    let cells = [StateCell(0), StateCell(10)]
    let seen = Recorder<Int>()
    let subscription = cells[0].source.merge(cells[1].source).subscribe { signal in
      guard let element = signal.element else { return }
      seen.record(element)
      if element < 2 { cells[0].set(element + 1) }
      if (10..<12).contains(element) { cells[1].set(element + 1) }
    }
    #expect(seen.elements == [0, 1, 2, 10, 11, 12])
    subscription.cancel()
  }

  @Test("A replaced element is released with no lock held")
  func releasedWithoutLock() {
    let first = Broadcast<DeinitAction>()
    let second = Broadcast<DeinitAction>()
    let seen = Box(0)
    let sources = [first.values.source, second.values.source]
    let subscription = StreamSource.combineLatest(sources).subscribe { _ in seen.increment() }
    second.send(DeinitAction {})
    first.send(DeinitAction { second.send(DeinitAction {}) })
    #expect(onThread { first.send(DeinitAction {}) }.wait())
    #expect(seen.value == 3)
    subscription.cancel()
  }

  @Test("An operator releases everything with its subscription")
  func memory() {
    let live = LiveCount()
    let broadcasts = [Broadcast<Counted>(), Broadcast<Counted>()]
    let sources = broadcasts.map(\.values.source)
    do {
      let subscriptions = [
        StreamSource.combineLatest(sources).subscribe { _ in },
        sources[0].merge(sources[1]).subscribe { _ in },
        sources[0].scan([Counted]()) { $0 + [$1] }.subscribe { _ in },
      ]
      for broadcast in broadcasts { broadcast.send(Counted(in: live)) }
      #expect(live.now == 2)
      for subscription in subscriptions { subscription.cancel() }
    }
    #expect(live.now == 0)
    #expect(broadcasts.map(\.subscriberCount) == [0, 0])
  }
}
