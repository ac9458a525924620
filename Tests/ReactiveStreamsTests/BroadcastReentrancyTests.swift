import Dispatch
import Testing

@testable import ReactiveStreams

/// Promise 1: no handler is called under a lock, and a slow handler blocks no other thread.
@Suite("Broadcast, reentrancy")
struct BroadcastReentrancyTests {
  private let broadcast = Broadcast<Int>()

  @Test("A handler may send, subscribe, cancel others and itself, count and finish")
  func everything() {
    let seen = Recorder<String>()
    let other = Box<OperationSubscription?>(nil)
    let itself = Box<OperationSubscription?>(nil)
    let added = Box<OperationSubscription?>(nil)
    let done = onThread { [broadcast] in
      itself.exchange(
        broadcast.subscribe { element in
          seen.record("a\(element)")
          broadcast.send(element + 1)
          added.exchange(broadcast.subscribe { seen.record("c\($0)") })
          other.cancel()
          itself.cancel()
          seen.record("\(broadcast.subscriberCount)")
          broadcast.send(element + 2)
          broadcast.finish()
        })
      other.exchange(broadcast.subscribe { seen.record("b\($0)") })
      broadcast.send(1)
    }
    #expect(done.wait())
    // The handler was added between the two sends.
    #expect(seen.elements == ["a1", "1", "c3"])
    added.cancel()
  }

  @Test("A handler may wait for another thread that sends, subscribes and cancels")
  func waitsForOthers() {
    let seen = Recorder<Int>()
    let kept = Recorder<OperationSubscription>()
    let subscription = broadcast.subscribe { [broadcast] element in
      seen.record(element)
      guard element == 1 else { return }
      let returned = onThread {
        broadcast.send(2)
        kept.record(broadcast.subscribe { seen.record($0 * 10) })
        broadcast.subscribe { _ in }.cancel()
        broadcast.send(3)
        _ = broadcast.subscriberCount
      }
      #expect(returned.wait())
    }
    let done = onThread { [broadcast] in broadcast.send(1) }
    #expect(done.wait())
    #expect(seen.elements == [1, 2, 3, 30])
    subscription.cancel()
    for late in kept.elements { late.cancel() }
  }

  @Test("A blocked handler does not block send, subscribe, cancel or a read on another thread")
  func blockedHandler() {
    let isInside = Gate()
    let mayLeave = Gate()
    let seen = Recorder<Int>()
    let subscription = broadcast.subscribe { element in
      seen.record(element)
      guard element == 1 else { return }
      isInside.open()
      mayLeave.wait()
    }
    let drained = onThread { [broadcast] in broadcast.send(1) }
    #expect(isInside.wait())
    let returned = onThread { [broadcast] in
      for element in 2...5 { broadcast.send(element) }
      broadcast.subscribe { _ in }.cancel()
      _ = broadcast.values.makeAsyncIterator()
      #expect(broadcast.subscriberCount == 1)
    }
    #expect(returned.wait())
    #expect(seen.elements == [1])
    mayLeave.open()
    #expect(drained.wait())
    #expect(seen.elements == [1, 2, 3, 4, 5])
    subscription.cancel()
  }

  @Test("Concurrent calls from handlers and threads cause no deadlock", arguments: 0..<100)
  func concurrentCalls(round: Int) {
    let broadcast = Broadcast<Int>()
    let kept = Recorder<OperationSubscription>()
    let subscription = broadcast.subscribe { element in
      guard element > 0 else { return }
      broadcast.send(element - 1)
      let itself = Box<OperationSubscription?>(nil)
      itself.exchange(
        broadcast.subscribe { _ in
          itself.cancel()
          kept.elements.randomElement()?.cancel()
        })
      if let added = itself.value { kept.record(added) }
      kept.elements.randomElement()?.cancel()
    }
    let done = onThread {
      DispatchQueue.concurrentPerform(iterations: 8) { thread in
        for _ in 0..<5 {
          broadcast.send(2)
          kept.record(broadcast.subscribe { _ in kept.elements.first?.cancel() })
          kept.elements.last?.cancel()
          _ = broadcast.values.makeAsyncIterator()
        }
      }
    }
    #expect(done.wait())
    for late in kept.elements { late.cancel() }
    subscription.cancel()
    #expect(broadcast.subscriberCount == 0)
  }

  @Test("Two broadcasts whose handlers send to each other cause no deadlock", arguments: 0..<100)
  func pingPong(round: Int) {
    let first = Broadcast<Int>()
    let second = Broadcast<Int>()
    let calls = Box(0)
    let subscriptions = [
      first.subscribe { element in
        calls.increment()
        if element > 0 { second.send(element - 1) }
      },
      second.subscribe { element in
        calls.increment()
        if element > 0 { first.send(element - 1) }
      },
    ]
    let ended = onThreads(4) { thread in
      for _ in 0..<10 { (thread % 2 == 0 ? first : second).send(5) }
    }
    #expect(ended)
    #expect(calls.value == 4 * 10 * 6)
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test("Handlers and elements are released with no lock held")
  func releasedWithoutLock() {
    let broadcast = Broadcast<DeinitAction?>()
    let seen = Box(0)
    let counting = broadcast.subscribe { _ in seen.increment() }
    let done = onThread {
      var subscription = OperationSubscription.empty
      do {
        let captured = DeinitAction { broadcast.send(nil) }
        subscription = broadcast.subscribe { _ in _ = captured }
      }
      subscription.cancel()
      broadcast.send(DeinitAction { broadcast.send(nil) })
      var iterator = Optional(broadcast.values(buffering: .newest(1)).makeAsyncIterator())
      #expect(iterator != nil)
      broadcast.send(DeinitAction { broadcast.send(nil) })
      broadcast.send(DeinitAction { broadcast.send(nil) })
      iterator = nil
    }
    #expect(done.wait())
    // Three elements were sent; the captured action and the three elements sent one each.
    #expect(seen.value == 7)
    counting.cancel()
  }

  @Test(
    "A send returns, even if its delivery causes an endless series of sends",
    .timeLimit(.minutes(5)))
  func endlessSends() async {
    let (isOver, last) = (Box(false), Box(0))
    let subscription = broadcast.subscribe { [broadcast] element in
      last.exchange(element)
      if !isOver.value, element < 500_000 { broadcast.send(element + 1) }
    }
    broadcast.send(1)
    // A task of the library takes over the delivery, and continues it.
    let seen = last.value
    #expect(seen < 500_000)
    let later = min(seen + 1_000, 500_000)
    while last.value < later, !Task.isCancelled { await Task.yield() }
    isOver.exchange(true)
    subscription.cancel()
  }
}
