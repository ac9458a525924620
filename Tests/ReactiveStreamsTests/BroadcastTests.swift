import Testing

@testable import ReactiveStreams

@Suite("Broadcast")
struct BroadcastTests {
  private let broadcast = Broadcast<Int>()
  private let heard = Recorder<String>()

  private func subscribe(_ name: String) -> OperationSubscription {
    broadcast.subscribe { [heard] element in heard.record("\(name)\(element)") }
  }

  @Test("A subscriber hears what is sent after it subscribed, until it cancels")
  func lifetime() {
    broadcast.send(0)
    let subscription = subscribe("a")
    #expect(broadcast.subscriberCount == 1)
    broadcast.send(1)
    broadcast.send(2)
    subscription.cancel()
    broadcast.send(3)
    #expect(heard.elements == ["a1", "a2"])
    #expect(broadcast.subscriberCount == 0)
  }

  @Test("A subscription that nobody keeps ends at once")
  func droppedSubscription() {
    _ = subscribe("a")
    broadcast.send(1)
    #expect(heard.elements == [])
    #expect(broadcast.subscriberCount == 0)
  }

  @Test("Subscribers are called in the order in which they subscribed")
  func subscriptionOrder() {
    var subscriptions = ["a", "b", "c", "d"].map(subscribe)
    broadcast.send(1)
    subscriptions.remove(at: 1).cancel()
    subscribe("e").store(in: &subscriptions)
    broadcast.send(2)
    #expect(heard.elements == ["a1", "b1", "c1", "d1", "a2", "c2", "d2", "e2"])
  }

  @Test("The order is kept with a thousand subscribers of which most go")
  func manySubscribers() {
    let numbers = Recorder<Int>()
    var subscriptions = (0..<1_000).map { number in
      broadcast.subscribe { _ in numbers.record(number) }
    }
    for number in 0..<1_000 where number % 7 != 0 { subscriptions[number] = .empty }
    broadcast.send(1)
    #expect(numbers.elements == Array(stride(from: 0, to: 1_000, by: 7)))
  }

  @Test("After a finish nothing is delivered, and streams end when they have read the rest")
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
    #expect(heard.elements == ["a1", "a2"])
    subscription.cancel()
  }

  @Test("A finish wakes a reader that waits")
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

  @Test("Who subscribes after the finish hears nothing, and a stream made then ends at once")
  func lateSubscriber() async {
    let values = broadcast.values
    broadcast.finish()
    let subscription = subscribe("a")
    broadcast.send(1)
    var iterator = values.makeAsyncIterator()
    #expect(await iterator.next() == nil)
    #expect(await iterator.next() == nil)
    #expect(heard.elements == [])
    subscription.cancel()
  }

  @Test("A broadcast that goes away ends its streams, after what was sent")
  func goesAway() async {
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

  @Test("A broadcast that goes away wakes a reader that waits")
  func goesAwayWakes() {
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

  @Test("Neither its streams nor its subscriptions keep a broadcast alive")
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

  @Test("A handler may let its broadcast go from within its call")
  func goesAwayInHandler() {
    let live = LiveCount()
    let box = Box<Broadcast<Int>?>(Broadcast())
    let held = Box<Counted?>(Counted(in: live))
    let subscription = box.value?.subscribe { [heard, held = held.exchange(nil)] element in
      _ = held
      heard.record("\(element)")
      box.exchange(nil)
    }
    box.value?.send(1)
    #expect(heard.elements == ["1"])
    subscription?.cancel()
    #expect(live.now == 0)
  }
}
