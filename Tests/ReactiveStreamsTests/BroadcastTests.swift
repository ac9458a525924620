import Testing

@testable import ReactiveStreams

@Suite("Broadcast")
struct BroadcastTests {
  private let broadcast = Broadcast<Int>()
  private let received = Recorder<String>()

  private func subscribe(_ name: String) -> OperationSubscription {
    broadcast.subscribe { [received] element in received.record("\(name)\(element)") }
  }

  @Test("A subscriber receives the elements that are sent until it cancels")
  func lifetime() {
    broadcast.send(0)
    let subscription = subscribe("a")
    #expect(broadcast.subscriberCount == 1)
    broadcast.send(1)
    broadcast.send(2)
    subscription.cancel()
    broadcast.send(3)
    #expect(received.elements == ["a1", "a2"])
    #expect(broadcast.subscriberCount == 0)
  }

  @Test("A subscription that is not stored ends at once")
  func droppedSubscription() {
    _ = subscribe("a")
    broadcast.send(1)
    #expect(received.elements == [])
    #expect(broadcast.subscriberCount == 0)
  }

  @Test("Subscribers are called in the order in which they subscribed")
  func subscriptionOrder() {
    var subscriptions = ["a", "b", "c", "d"].map(subscribe)
    broadcast.send(1)
    subscriptions.remove(at: 1).cancel()
    subscribe("e").store(in: &subscriptions)
    broadcast.send(2)
    #expect(received.elements == ["a1", "b1", "c1", "d1", "a2", "c2", "d2", "e2"])
  }

  @Test("The order is kept when most of a thousand subscribers are removed")
  func manySubscribers() {
    let numbers = Recorder<Int>()
    var subscriptions = (0..<1_000).map { number in
      broadcast.subscribe { _ in numbers.record(number) }
    }
    for number in 0..<1_000 where number % 7 != 0 { subscriptions[number] = .empty }
    broadcast.send(1)
    #expect(numbers.elements == Array(stride(from: 0, to: 1_000, by: 7)))
  }

  @Test("After a finish nothing is delivered, and streams end after their unread elements")
  func finish() {
    let executor = ManualExecutor()
    let read = Recorder<Int>()
    let isOver = Box(false)
    let subscription = subscribe("a")
    executor.start { [values = broadcast.values] in
      for await element in values { read.record(element) }
      isOver.exchange(true)
    }
    executor.run()
    broadcast.send(1)
    broadcast.send(2)
    broadcast.finish()
    broadcast.send(3)
    broadcast.finish()
    #expect(read.elements == [])
    executor.run()
    #expect(read.elements == [1, 2])
    #expect(isOver.value)
    #expect(received.elements == ["a1", "a2"])
    subscription.cancel()
  }

  @Test("A finish resumes a suspended reader")
  func finishWakes() {
    let executor = ManualExecutor()
    let isOver = Box(false)
    executor.start { [values = broadcast.values] in
      for await _ in values {}
      isOver.exchange(true)
    }
    executor.run()
    #expect(broadcast.subscriberCount == 1)
    #expect(!isOver.value)
    broadcast.finish()
    executor.run()
    #expect(isOver.value)
    #expect(broadcast.subscriberCount == 0)
  }

  @Test("A subscriber that is added after the finish receives nothing, and a stream ends at once")
  func lateSubscriber() async {
    let values = broadcast.values
    broadcast.finish()
    let subscription = subscribe("a")
    broadcast.send(1)
    var iterator = values.makeAsyncIterator()
    #expect(await iterator.next() == nil)
    #expect(await iterator.next() == nil)
    #expect(received.elements == [])
    subscription.cancel()
  }

  @Test("A broadcast that is released ends its streams, after their unread elements")
  func released() async {
    var broadcast = Optional(Broadcast<Int>())
    let values = broadcast?.values
    var iterator = values?.makeAsyncIterator()
    broadcast?.send(1)
    broadcast = nil
    #expect(await iterator?.next() == 1)
    #expect(await iterator?.next() == nil)
    var late = values?.makeAsyncIterator()
    #expect(await late?.next() == nil)
  }

  @Test("A broadcast that is released resumes a suspended reader")
  func releasedResumes() {
    let executor = ManualExecutor()
    let isOver = Box(false)
    do {
      let broadcast = Broadcast<Int>()
      executor.start { [values = broadcast.values] in
        for await _ in values {}
        isOver.exchange(true)
      }
      executor.run()
      #expect(broadcast.subscriberCount == 1)
    }
    executor.run()
    #expect(isOver.value)
  }

  @Test("Streams and subscriptions do not retain their broadcast")
  func weakness() {
    var broadcast = Optional(Broadcast<Int>())
    weak let weakly = broadcast
    let subscription = broadcast?.subscribe { _ in }
    let iterator = broadcast?.values.makeAsyncIterator()
    broadcast = nil
    #expect(weakly == nil)
    subscription?.cancel()
    _ = iterator
  }

  @Test("A handler may release its broadcast inside its call")
  func releasedInHandler() {
    let live = LiveCount()
    let box = Box<Broadcast<Int>?>(Broadcast())
    let held = Box<Counted?>(Counted(in: live))
    let subscription = box.value?.subscribe { [received, held = held.exchange(nil)] element in
      _ = held
      received.record("\(element)")
      box.exchange(nil)
    }
    box.value?.send(1)
    #expect(received.elements == ["1"])
    subscription?.cancel()
    #expect(live.now == 0)
  }
}
