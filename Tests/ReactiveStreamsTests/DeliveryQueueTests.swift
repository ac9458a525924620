import TestSupport
import Testing

@testable import ReactiveStreams

/// A delivery queue whose subscribers record their events.
private struct Fixture {
  var queue = DeliveryQueue<Int>()
  let calls = Recorder<String>()

  func subscriber(_ name: String) -> Subscriber<Int> {
    Subscriber { [calls] event in calls.record("\(name)\(event)") }
  }

  mutating func subscribe(_ name: String, initially event: Int? = nil) -> UInt64 {
    queue.subscribe(subscriber(name), initially: event)
  }

  /// Performs all queued deliveries.
  mutating func drain() {
    queue.deliver()
  }
}

@Suite("DeliveryQueue")
struct DeliveryQueueTests {
  private var fixture = Fixture()

  @Test("An idle queue without events starts no drain")
  mutating func emptyIdle() {
    var delivery = fixture.queue.beginDraining()
    #expect(!delivery.hasEvent)
    #expect(fixture.queue.takeNext(into: &delivery).isEmpty && !delivery.hasEvent)
    #expect(fixture.queue.pendingCount == 0)
    #expect(fixture.queue.subscriberCount == 0)
  }

  @Test("An event without recipients is not created and not queued")
  mutating func noRecipients() {
    var made = 0
    func event() -> Int {
      made += 1
      return made
    }
    fixture.queue.append(event())
    #expect(made == 0)
    #expect(fixture.queue.pendingCount == 0)
    fixture.queue.append(event(), also: [fixture.subscriber("x")])
    #expect(made == 1)
    #expect(fixture.queue.pendingCount == 1)
  }

  @Test("Subscribers are called in the order in which they subscribed, one event after the other")
  mutating func order() {
    for name in ["a", "b", "c"] { _ = fixture.subscribe(name) }
    fixture.queue.append(1)
    fixture.queue.append(2)
    fixture.drain()
    #expect(fixture.calls.elements == ["a1", "b1", "c1", "a2", "b2", "c2"])
  }

  @Test("Recipients that are passed with an event receive it before the subscribers, and no other")
  mutating func others() {
    _ = fixture.subscribe("a")
    fixture.queue.append(1, also: [fixture.subscriber("x"), fixture.subscriber("y")])
    fixture.queue.append(2)
    fixture.drain()
    #expect(fixture.calls.elements == ["x1", "y1", "a1", "a2"])
  }

  @Test("An event for one subscriber reaches only this one, in the order of the queue")
  mutating func notifyOne() {
    _ = fixture.subscribe("a")
    fixture.queue.append(1)
    fixture.queue.notify(fixture.subscriber("x"), of: 2)
    fixture.queue.append(3)
    fixture.drain()
    #expect(fixture.calls.elements == ["a1", "x2", "a3"])
  }

  @Test("The initial event reaches only the new subscriber, before later events")
  mutating func initialEvent() {
    _ = fixture.subscribe("a")
    fixture.queue.append(1)
    _ = fixture.subscribe("b", initially: 7)
    fixture.queue.append(2)
    fixture.drain()
    #expect(fixture.calls.elements == ["a1", "b7", "a2", "b2"])
  }

  @Test("A subscriber does not receive events that were appended before it subscribed")
  mutating func lateSubscriber() {
    _ = fixture.subscribe("a")
    fixture.queue.append(1)
    _ = fixture.subscribe("b")
    fixture.drain()
    #expect(fixture.calls.elements == ["a1"])
  }

  @Test("While one thread drains, no other starts, and the draining thread takes later events")
  mutating func oneDrainer() throws {
    _ = fixture.subscribe("a")
    fixture.queue.append(1)
    var delivery = fixture.queue.beginDraining()
    try #require(delivery.hasEvent)
    fixture.queue.append(2)
    #expect(!fixture.queue.beginDraining().hasEvent)
    delivery.perform()
    _ = fixture.queue.takeNext(into: &delivery)
    try #require(delivery.hasEvent)
    #expect(!fixture.queue.beginDraining().hasEvent)
    delivery.perform()
    #expect(!fixture.queue.beginDraining().hasEvent)
    _ = fixture.queue.takeNext(into: &delivery)
    #expect(!delivery.hasEvent)
    fixture.queue.append(3)
    #expect(fixture.queue.beginDraining().hasEvent)
    #expect(fixture.calls.elements == ["a1", "a2"])
  }

  @Test("A drain ends when the pending events were dropped during a delivery")
  mutating func dropWhileDraining() throws {
    _ = fixture.subscribe("a")
    fixture.queue.append(1)
    fixture.queue.append(2)
    fixture.queue.append(3)
    var delivery = fixture.queue.beginDraining()
    try #require(delivery.hasEvent)
    #expect(fixture.queue.dropPending().count == 2)
    #expect(fixture.queue.pendingCount == 0)
    delivery.perform()
    #expect(!fixture.queue.beginDraining().hasEvent)
    _ = fixture.queue.takeNext(into: &delivery)
    #expect(!delivery.hasEvent)
    fixture.queue.append(4)
    fixture.drain()
    #expect(fixture.calls.elements == ["a1", "a4"])
  }

  @Test("Dropped events and their recipients are returned, and are released by the caller")
  mutating func dropReleases() {
    let live = LiveCount()
    var queue = DeliveryQueue<Counted>()
    queue.notify(capturing(Counted(in: live)), of: Counted(in: live))
    #expect(live.now == 2)
    var dropped = Optional(queue.dropPending())
    #expect(dropped?.count == 1)
    #expect(live.now == 2)
    dropped = nil
    #expect(live.now == 0)
  }

  @Test("A list that is replaced during a drain is returned, and is released by the caller")
  mutating func replacedList() {
    let live = LiveCount()
    var queue = DeliveryQueue<Counted>()
    let id = queue.subscribe(capturing(Counted(in: live)))
    _ = queue.subscribe(Subscriber { _ in })
    queue.append(Counted(in: live))
    queue.append(Counted(in: live))
    var delivery = queue.beginDraining()
    _ = queue.unsubscribe(id)
    delivery.perform()
    #expect(live.now == 2)
    var replaced = queue.takeNext(into: &delivery)
    #expect(live.now == 2 && replaced.count == 2)
    replaced = []
    #expect(live.now == 1)
    delivery.perform()
    #expect(live.now == 0)
    replaced = queue.takeNext(into: &delivery)
    #expect(replaced.isEmpty && !delivery.hasEvent)
  }

  @Test("A subscriber that is removed after a delivery is not retained for the next one")
  mutating func removedAfterDelivery() {
    let live = LiveCount()
    var queue = DeliveryQueue<Counted>()
    let id = queue.subscribe(capturing(Counted(in: live)), initially: Counted(in: live))
    queue.deliver()
    #expect(live.now == 1)
    _ = queue.unsubscribe(id)
    #expect(live.now == 0)
  }

  private func capturing(_ captured: Counted) -> Subscriber<Counted> {
    Subscriber { _ in _ = captured }
  }

  @Test("A removed subscriber receives nothing more, also of a delivery that was taken before")
  mutating func unsubscribe() throws {
    let a = fixture.subscribe("a")
    let b = fixture.subscribe("b")
    let c = fixture.subscribe("c")
    fixture.queue.append(1)
    #expect(fixture.queue.unsubscribe(a) != nil)
    var delivery = fixture.queue.beginDraining()
    try #require(delivery.hasEvent)
    #expect(fixture.queue.unsubscribe(b) != nil)
    delivery.perform()
    #expect(fixture.queue.subscriberCount == 1)
    #expect(fixture.calls.elements == ["c1"])
    #expect(fixture.queue.unsubscribe(c) != nil)
    #expect(fixture.queue.subscriberCount == 0)
  }

  @Test("A subscriber that is removed before its initial event does not receive it")
  mutating func unsubscribeBeforeInitial() {
    let id = fixture.subscribe("a", initially: 1)
    #expect(fixture.queue.unsubscribe(id) != nil)
    fixture.drain()
    #expect(fixture.calls.elements == [])
  }

  @Test("A removal with an unknown or a removed identifier returns nil and changes nothing")
  mutating func unsubscribeTwice() {
    let id = fixture.subscribe("a")
    #expect(fixture.queue.unsubscribe(id + 1) == nil)
    #expect(fixture.queue.unsubscribe(id) != nil)
    #expect(fixture.queue.unsubscribe(id) == nil)
    #expect(fixture.queue.subscriberCount == 0)
  }

  @Test("Identifiers grow and are not reused")
  mutating func identifiers() {
    let first = fixture.subscribe("a")
    let second = fixture.subscribe("b")
    #expect(fixture.queue.unsubscribe(second) != nil)
    #expect(fixture.queue.unsubscribe(first) != nil)
    let third = fixture.subscribe("c")
    #expect([first, second, third] == [0, 1, 2])
    #expect(fixture.queue.subscriberCount == 1)
  }

  @Test("A subscriber that is added between commit and delivery does not receive the event")
  mutating func subscribeBetween() throws {
    _ = fixture.subscribe("a")
    fixture.queue.append(1)
    fixture.queue.append(2)
    var delivery = fixture.queue.beginDraining()
    try #require(delivery.hasEvent)
    _ = fixture.subscribe("b")
    delivery.perform()
    fixture.queue.append(3)
    _ = fixture.queue.takeNext(into: &delivery)
    fixture.queue.deliver(delivery)
    #expect(fixture.calls.elements == ["a1", "a2", "a3", "b3"])
  }
}

@Suite("Subscriber")
struct SubscriberTests {
  @Test("It receives events until it is deactivated, also inside its own call")
  func deactivation() {
    let calls = Recorder<Int>()
    let itself = Box<Subscriber<Int>?>(nil)
    let subscriber = Subscriber<Int> { event in
      calls.record(event)
      if event == 2 { itself.value?.deactivate() }
    }
    itself.exchange(subscriber)
    for event in 1...4 { subscriber.receive(event) }
    itself.exchange(nil)
    #expect(calls.elements == [1, 2])
  }
}
