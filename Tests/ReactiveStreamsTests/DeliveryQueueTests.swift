import Testing

@testable import ReactiveStreams

/// A delivery queue whose subscribers write down what they hear.
private struct Fixture {
  var queue = DeliveryQueue<Int>()
  let calls = Recorder<String>()

  func subscriber(_ name: String) -> Subscriber<Int> {
    Subscriber { [calls] event in calls.record("\(name)\(event)") }
  }

  mutating func subscribe(_ name: String, initially event: Int? = nil) -> UInt64 {
    queue.subscribe(subscriber(name), initially: event)
  }

  /// Delivers all that is queued.
  mutating func drain() {
    var delivery = queue.beginDraining()
    while let current = delivery {
      current.perform()
      delivery = queue.takeNext()
    }
  }
}

@Suite("DeliveryQueue")
struct DeliveryQueueTests {
  private var fixture = Fixture()

  @Test("An idle queue with nothing to tell starts no drain")
  mutating func emptyIdle() {
    #expect(fixture.queue.beginDraining() == nil)
    #expect(fixture.queue.takeNext() == nil)
    #expect(fixture.queue.pendingCount == 0)
    #expect(fixture.queue.subscriberCount == 0)
  }

  @Test("An event without an audience is not made and not kept")
  mutating func noAudience() {
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

  @Test("Subscribers are called in the order in which they came, one event after the other")
  mutating func order() {
    for name in ["a", "b", "c"] { _ = fixture.subscribe(name) }
    fixture.queue.append(1)
    fixture.queue.append(2)
    fixture.drain()
    #expect(fixture.calls.elements == ["a1", "b1", "c1", "a2", "b2", "c2"])
  }

  @Test("Those named with an event hear it before the subscribers, and no other event")
  mutating func others() {
    _ = fixture.subscribe("a")
    fixture.queue.append(1, also: [fixture.subscriber("x"), fixture.subscriber("y")])
    fixture.queue.append(2)
    fixture.drain()
    #expect(fixture.calls.elements == ["x1", "y1", "a1", "a2"])
  }

  @Test("A subscriber hears its first event before all that is appended later, and alone")
  mutating func initialEvent() {
    _ = fixture.subscribe("a")
    fixture.queue.append(1)
    _ = fixture.subscribe("b", initially: 7)
    fixture.queue.append(2)
    fixture.drain()
    #expect(fixture.calls.elements == ["a1", "b7", "a2", "b2"])
  }

  @Test("A subscriber hears nothing that was appended before it came")
  mutating func lateSubscriber() {
    _ = fixture.subscribe("a")
    fixture.queue.append(1)
    _ = fixture.subscribe("b")
    fixture.drain()
    #expect(fixture.calls.elements == ["a1"])
  }

  @Test("While one drains nobody else starts, and what comes meanwhile is the drainer's")
  mutating func oneDrainer() throws {
    _ = fixture.subscribe("a")
    fixture.queue.append(1)
    let first = fixture.queue.beginDraining()
    try #require(first != nil)
    fixture.queue.append(2)
    #expect(fixture.queue.beginDraining() == nil)
    first?.perform()
    let second = fixture.queue.takeNext()
    try #require(second != nil)
    #expect(fixture.queue.beginDraining() == nil)
    second?.perform()
    #expect(fixture.queue.beginDraining() == nil)
    #expect(fixture.queue.takeNext() == nil)
    fixture.queue.append(3)
    #expect(fixture.queue.beginDraining() != nil)
    #expect(fixture.calls.elements == ["a1", "a2"])
  }

  @Test("Who tells something by himself is the drainer, if nothing is delivered before that")
  mutating func tellingByOneself() {
    _ = fixture.subscribe("a")
    fixture.queue.append(1)
    #expect(fixture.queue.beginTelling() == false, "an event waits")
    let delivery = fixture.queue.beginDraining()
    #expect(fixture.queue.beginTelling() == false, "somebody delivers")
    delivery?.perform()
    #expect(fixture.queue.takeNext() == nil)
    #expect(fixture.queue.beginTelling() == true)
    fixture.queue.append(2)
    #expect(fixture.queue.beginDraining() == nil)
    #expect(fixture.queue.beginTelling() == false)
    fixture.queue.takeNext()?.perform()
    #expect(fixture.queue.takeNext() == nil)
    #expect(fixture.queue.beginTelling() == true, "the drain has ended")
    #expect(fixture.calls.elements == ["a1", "a2"])
  }

  @Test("A drain that finds nothing more ends, also when the rest was dropped under it")
  mutating func dropWhileDraining() throws {
    _ = fixture.subscribe("a")
    fixture.queue.append(1)
    fixture.queue.append(2)
    fixture.queue.append(3)
    let first = fixture.queue.beginDraining()
    try #require(first != nil)
    #expect(fixture.queue.dropPending().count == 2)
    #expect(fixture.queue.pendingCount == 0)
    first?.perform()
    #expect(fixture.queue.beginDraining() == nil)
    #expect(fixture.queue.takeNext() == nil)
    fixture.queue.append(4)
    fixture.drain()
    #expect(fixture.calls.elements == ["a1", "a4"])
  }

  @Test("What is dropped is given back alive: its events and those who would have heard them")
  mutating func dropReleases() {
    let live = LiveCount()
    var queue = DeliveryQueue<Counted>()
    let id = queue.subscribe(listener(Counted(in: live)), initially: Counted(in: live))
    var removed = queue.unsubscribe(id)
    #expect(removed != nil)
    removed = nil
    #expect(live.now == 2)
    var dropped = Optional(queue.dropPending())
    #expect(dropped?.count == 1)
    #expect(live.now == 2)
    dropped = nil
    #expect(live.now == 0)
  }

  private func listener(_ captured: Counted) -> Subscriber<Counted> {
    Subscriber { _ in _ = captured }
  }

  @Test("An unsubscribed one hears nothing more: queued, taken, and in mid-delivery")
  mutating func unsubscribe() throws {
    let a = fixture.subscribe("a")
    let b = fixture.subscribe("b")
    let c = fixture.subscribe("c")
    fixture.queue.append(1)
    #expect(fixture.queue.unsubscribe(a) != nil)
    let delivery = fixture.queue.beginDraining()
    try #require(delivery != nil)
    #expect(fixture.queue.unsubscribe(b) != nil)
    delivery?.perform()
    #expect(fixture.queue.subscriberCount == 1)
    #expect(fixture.calls.elements == ["c1"])
    #expect(fixture.queue.unsubscribe(c) != nil)
    #expect(fixture.queue.subscriberCount == 0)
  }

  @Test("One that unsubscribed before its first event does not hear it")
  mutating func unsubscribeBeforeInitial() {
    let id = fixture.subscribe("a", initially: 1)
    #expect(fixture.queue.unsubscribe(id) != nil)
    fixture.drain()
    #expect(fixture.calls.elements == [])
  }

  @Test("A second unsubscribe, and one of a stranger, change nothing")
  mutating func unsubscribeTwice() {
    let id = fixture.subscribe("a")
    #expect(fixture.queue.unsubscribe(id + 1) == nil)
    #expect(fixture.queue.unsubscribe(id) != nil)
    #expect(fixture.queue.unsubscribe(id) == nil)
    #expect(fixture.queue.subscriberCount == 0)
  }

  @Test("A subscriber that comes between commit and delivery is not in the audience")
  mutating func subscribeBetween() throws {
    _ = fixture.subscribe("a")
    fixture.queue.append(1)
    fixture.queue.append(2)
    let first = fixture.queue.beginDraining()
    try #require(first != nil)
    _ = fixture.subscribe("b")
    first?.perform()
    fixture.queue.append(3)
    while let next = fixture.queue.takeNext() { next.perform() }
    #expect(fixture.calls.elements == ["a1", "a2", "a3", "b3"])
  }
}
