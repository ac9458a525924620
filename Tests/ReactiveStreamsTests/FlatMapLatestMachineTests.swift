import Testing

@testable import ReactiveStreams

/// The machine with a subscriber that records its signals; the end is recorded as "end".
private struct Fixture {
  var machine = FlatMapLatestMachine<Int>()
  let received = Recorder<String>()
  let cancelled = Recorder<String>()

  init() {
    _ = machine.deliveries.subscribe(
      Subscriber { [received] signal in received.record(signal.element.map(String.init) ?? "end") })
  }

  func subscription(_ name: String) -> OperationSubscription {
    OperationSubscription { [cancelled] in cancelled.record(name) }
  }

  mutating func drain() {
    var delivery = machine.deliveries.beginDraining()
    while let current = delivery {
      current.perform()
      delivery = machine.deliveries.takeNext()
    }
  }
}

@Suite("FlatMapLatestMachine")
struct FlatMapLatestMachineTests {
  private var fixture = Fixture()

  @Test("Every outer element begins an epoch")
  mutating func epochs() {
    let epochs = (0..<3).map { _ in fixture.machine.beginEpoch()?.epoch }
    #expect(epochs == [1, 2, 3])
  }

  @Test("Inner signals before the first epoch are ignored")
  mutating func beforeFirst() {
    #expect(fixture.machine.receiveInner(.element(1), epoch: 0) == nil)
    #expect(fixture.machine.receiveInner(.finished, epoch: 0) == nil)
    #expect(fixture.machine.deliveries.pendingCount == 0)
  }

  @Test("Elements of the present epoch are delivered, those of an earlier epoch are not")
  mutating func staleElements() {
    _ = fixture.machine.beginEpoch()
    _ = fixture.machine.receiveInner(.element(1), epoch: 1)
    fixture.drain()
    _ = fixture.machine.beginEpoch()
    _ = fixture.machine.receiveInner(.element(2), epoch: 1)
    _ = fixture.machine.receiveInner(.element(3), epoch: 2)
    fixture.drain()
    #expect(fixture.received.elements == ["1", "3"])
  }

  @Test("A new epoch returns the earlier subscription and drops queued elements")
  mutating func newEpoch() {
    let inner = fixture.subscription("inner")
    _ = fixture.machine.beginEpoch()
    #expect(fixture.machine.setInner(inner, epoch: 1) == nil)
    _ = fixture.machine.receiveInner(.element(1), epoch: 1)
    let beginning = fixture.machine.beginEpoch()
    #expect(beginning?.inner == inner)
    #expect(beginning?.dropped.count == 1)
    fixture.drain()
    #expect(fixture.received.elements == [])
    #expect(fixture.cancelled.elements == [])
  }

  @Test("A subscription is returned when its epoch is over or its source has finished")
  mutating func lateSubscription() {
    let inner = fixture.subscription("inner")
    _ = fixture.machine.beginEpoch()
    _ = fixture.machine.beginEpoch()
    #expect(fixture.machine.setInner(inner, epoch: 1) == inner)
    #expect(fixture.machine.receiveInner(.finished, epoch: 2) == nil)
    #expect(fixture.machine.setInner(inner, epoch: 2) == inner)
  }

  @Test("The end of an inner source returns its subscription, and later elements are ignored")
  mutating func innerEnd() {
    let inner = fixture.subscription("inner")
    _ = fixture.machine.beginEpoch()
    _ = fixture.machine.setInner(inner, epoch: 1)
    #expect(fixture.machine.receiveInner(.finished, epoch: 1) == inner)
    #expect(fixture.machine.receiveInner(.finished, epoch: 1) == nil)
    _ = fixture.machine.receiveInner(.element(1), epoch: 1)
    fixture.drain()
    #expect(fixture.received.elements == [])
  }

  @Test("It ends when the outer source and the last inner source have ended, in either order")
  mutating func end() {
    _ = fixture.machine.beginEpoch()
    _ = fixture.machine.receiveInner(.finished, epoch: 1)
    fixture.drain()
    #expect(fixture.received.elements == [])
    fixture.machine.finishOuter()
    fixture.machine.finishOuter()
    fixture.drain()
    #expect(fixture.received.elements == ["end"])

    var other = Fixture()
    _ = other.machine.beginEpoch()
    other.machine.finishOuter()
    _ = other.machine.receiveInner(.element(1), epoch: 1)
    other.drain()
    #expect(other.received.elements == ["1"])
    _ = other.machine.receiveInner(.finished, epoch: 1)
    other.drain()
    #expect(other.received.elements == ["1", "end"])
  }

  @Test("The end of an earlier inner source is ignored")
  mutating func staleEnd() {
    _ = fixture.machine.beginEpoch()
    _ = fixture.machine.beginEpoch()
    fixture.machine.finishOuter()
    #expect(fixture.machine.receiveInner(.finished, epoch: 1) == nil)
    fixture.drain()
    #expect(fixture.received.elements == [])
  }

  @Test("It ends when the outer source ends without an element")
  mutating func emptyOuter() {
    fixture.machine.finishOuter()
    fixture.drain()
    #expect(fixture.received.elements == ["end"])
  }

  @Test("A cancel returns the inner subscription, and later events are ignored")
  mutating func cancel() {
    let inner = fixture.subscription("inner")
    _ = fixture.machine.beginEpoch()
    _ = fixture.machine.setInner(inner, epoch: 1)
    #expect(fixture.machine.cancel() == inner)
    #expect(fixture.machine.cancel() == nil)
    #expect(fixture.machine.receiveInner(.element(1), epoch: 1) == nil)
    #expect(fixture.machine.receiveInner(.finished, epoch: 1) == nil)
    #expect(fixture.machine.setInner(inner, epoch: 1) == inner)
    fixture.machine.finishOuter()
    #expect(fixture.machine.deliveries.pendingCount == 0)
  }

  @Test("An outer element that arrives after a cancel begins no epoch")
  mutating func elementAfterCancel() {
    _ = fixture.machine.cancel()
    #expect(fixture.machine.beginEpoch() == nil)
  }
}
