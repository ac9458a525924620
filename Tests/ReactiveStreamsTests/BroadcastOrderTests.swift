import Testing

@testable import ReactiveStreams

/// Promise 2: one order for all, none twice, none lost.
@Suite("Broadcast, order")
struct BroadcastOrderTests {
  private let threads = 8
  private let sends = 100

  private func expectAll(_ elements: [Int], round: Int) {
    #expect(elements.count == threads * sends)
    #expect(Set(elements).count == threads * sends)
    for thread in 0..<threads {
      let own = elements.filter { $0 / sends == thread }
      #expect(own == Array(thread * sends..<(thread + 1) * sends))
    }
  }

  @Test("All subscribers receive the elements of eight threads in one order", arguments: 0..<200)
  func oneOrder(round: Int) {
    let broadcast = Broadcast<Int>()
    let seen = (0..<4).map { _ in Recorder<Int>() }
    let subscriptions = seen.map { recorder in broadcast.subscribe { recorder.record($0) } }
    let ended = onThreads(threads) { [sends] thread in
      for number in 0..<sends { broadcast.send(thread * sends + number) }
    }
    #expect(ended)
    expectAll(seen[0].elements, round: round)
    for recorder in seen { #expect(recorder.elements == seen[0].elements) }
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test("Calls of handlers never overlap", arguments: 0..<50)
  func oneAtATime(round: Int) {
    let broadcast = Broadcast<Int>()
    let inside = Box(0)
    let overlaps = Box(0)
    let subscriptions = (0..<2).map { _ in
      broadcast.subscribe { _ in
        if inside.exchange(1) != 0 { overlaps.increment() }
        inside.exchange(0)
      }
    }
    let ended = onThreads(threads) { thread in
      for number in 0..<50 { broadcast.send(number) }
    }
    #expect(ended)
    #expect(overlaps.value == 0)
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test(
    "A subscriber that is added during concurrent sends misses only the first elements",
    arguments: 0..<100)
  func subscribeDuringSends(round: Int) {
    let broadcast = Broadcast<Int>()
    let first = Recorder<Int>()
    let late = Recorder<Int>()
    let subscription = broadcast.subscribe { first.record($0) }
    let lateSubscription = Box<OperationSubscription?>(nil)
    let ended = onThreads(threads) { [sends] thread in
      for number in 0..<sends {
        if thread == 0, number == sends / 2 {
          lateSubscription.exchange(broadcast.subscribe { late.record($0) })
        }
        broadcast.send(thread * sends + number)
      }
    }
    #expect(ended)
    expectAll(first.elements, round: round)
    #expect(late.elements == Array(first.elements.suffix(late.count)))
    #expect(late.elements.contains(sends / 2))
    subscription.cancel()
    lateSubscription.cancel()
  }

  @Test("An unlimited stream has every element, in the order of the handlers")
  func stream() async {
    let broadcast = Broadcast<Int>()
    let handled = Recorder<Int>()
    let read = Recorder<Int>()
    let subscription = broadcast.subscribe { handled.record($0) }
    var iterator = broadcast.values.makeAsyncIterator()
    let done = (0..<threads).map { thread in
      onThread { [sends] in
        for number in 0..<sends { broadcast.send(thread * sends + number) }
      }
    }
    for _ in 0..<threads * sends {
      if let element = await iterator.next() { read.record(element) }
    }
    for gate in done { gate.wait() }
    expectAll(read.elements, round: 0)
    #expect(read.elements == handled.elements)
    subscription.cancel()
  }

  @Test("An element that a handler sends is delivered after the present delivery")
  func sendInHandler() {
    let broadcast = Broadcast<Int>()
    let seen = Recorder<String>()
    let subscriptions = ["a", "b"].map { name in
      broadcast.subscribe { element in
        seen.record("\(name)\(element)")
        if name == "a", element < 3 { broadcast.send(element + 1) }
      }
    }
    broadcast.send(1)
    #expect(seen.elements == ["a1", "b1", "a2", "b2", "a3", "b3"])
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test("A cancelled subscriber is not called after cancel() returned, also during a delivery")
  func cancelInDelivery() {
    let broadcast = Broadcast<Int>()
    let seen = Recorder<String>()
    let later = Box<OperationSubscription?>(nil)
    let first = broadcast.subscribe { element in
      seen.record("a\(element)")
      later.cancel()
    }
    later.exchange(broadcast.subscribe { seen.record("b\($0)") })
    let last = broadcast.subscribe { seen.record("c\($0)") }
    broadcast.send(1)
    #expect(seen.elements == ["a1", "c1"])
    #expect(broadcast.subscriberCount == 2)
    first.cancel()
    last.cancel()
  }

  @Test("A subscriber that cancels itself does not receive queued elements")
  func cancelItself() {
    let broadcast = Broadcast<Int>()
    let seen = Recorder<Int>()
    let box = Box<OperationSubscription?>(nil)
    box.exchange(
      broadcast.subscribe { element in
        seen.record(element)
        broadcast.send(element + 1)
        box.cancel()
      })
    broadcast.send(1)
    #expect(seen.elements == [1])
  }

  @Test("No call begins after cancel() returned on another thread", arguments: 0..<200)
  func cancelDuringSends(round: Int) {
    let broadcast = Broadcast<Int>()
    let isOver = Box(false)
    let calls = Recorder<Bool>()
    let late = Box(0)
    let subscription = broadcast.subscribe { element in
      // This element is sent after the cancel, so a call with it is too late.
      if element == 1 { late.increment() }
      calls.record(isOver.value)
    }
    let ended = onThreads(3) { thread in
      if thread == 0 {
        subscription.cancel()
        isOver.exchange(true)
        broadcast.send(1)
      } else {
        for _ in 0..<20 { broadcast.send(0) }
      }
    }
    #expect(ended)
    #expect(late.value == 0)
    // A call in progress may end after the cancel. No second one can follow it.
    #expect(calls.elements.count { $0 } <= 1)
  }
}
