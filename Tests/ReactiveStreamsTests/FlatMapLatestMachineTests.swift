import Testing

@testable import ReactiveStreams

/// The machine with a subscriber that writes down what it hears: the end is "end".
private struct Fixture {
  var machine = FlatMapLatestMachine<Int>()
  let heard = Recorder<String>()
  let cancelled = Recorder<String>()

  init() {
    _ = machine.deliveries.subscribe(
      Subscriber { [heard] signal in heard.record(signal.element.map(String.init) ?? "end") })
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

  @Test("Every outer element begins an epoch of its own")
  mutating func epochs() {
    let epochs = (0..<3).map { _ in fixture.machine.beginEpoch()?.epoch }
    #expect(epochs == [1, 2, 3])
  }

  @Test("No inner signal counts before the first epoch")
  mutating func beforeFirst() {
    #expect(fixture.machine.receiveInner(.element(1), epoch: 0) == nil)
    #expect(fixture.machine.receiveInner(.finished, epoch: 0) == nil)
    #expect(fixture.machine.deliveries.pendingCount == 0)
  }

  @Test("Elements of the present epoch are delivered, those of an earlier one are not")
  mutating func staleElements() {
    _ = fixture.machine.beginEpoch()
    _ = fixture.machine.receiveInner(.element(1), epoch: 1)
    fixture.drain()
    _ = fixture.machine.beginEpoch()
    _ = fixture.machine.receiveInner(.element(2), epoch: 1)
    _ = fixture.machine.receiveInner(.element(3), epoch: 2)
    fixture.drain()
    #expect(fixture.heard.elements == ["1", "3"])
  }

  @Test("A new epoch gives back the earlier subscription, and drops what waits for delivery")
  mutating func newEpoch() {
    let inner = fixture.subscription("inner")
    _ = fixture.machine.beginEpoch()
    #expect(fixture.machine.setInner(inner, epoch: 1) == nil)
    _ = fixture.machine.receiveInner(.element(1), epoch: 1)
    let beginning = fixture.machine.beginEpoch()
    #expect(beginning?.inner == inner)
    #expect(beginning?.dropped.count == 1)
    fixture.drain()
    #expect(fixture.heard.elements == [])
    #expect(fixture.cancelled.elements == [])
  }

  @Test("A subscription is given back when its epoch is over or has finished already")
  mutating func lateSubscription() {
    let inner = fixture.subscription("inner")
    _ = fixture.machine.beginEpoch()
    _ = fixture.machine.beginEpoch()
    #expect(fixture.machine.setInner(inner, epoch: 1) == inner)
    #expect(fixture.machine.receiveInner(.finished, epoch: 2) == nil)
    #expect(fixture.machine.setInner(inner, epoch: 2) == inner)
  }

  @Test("The end of an inner source gives its subscription back, and ends its epoch's elements")
  mutating func innerEnd() {
    let inner = fixture.subscription("inner")
    _ = fixture.machine.beginEpoch()
    _ = fixture.machine.setInner(inner, epoch: 1)
    #expect(fixture.machine.receiveInner(.finished, epoch: 1) == inner)
    #expect(fixture.machine.receiveInner(.finished, epoch: 1) == nil)
    _ = fixture.machine.receiveInner(.element(1), epoch: 1)
    fixture.drain()
    #expect(fixture.heard.elements == [])
  }

  @Test("It ends when the outer source and the last inner one have, in either order")
  mutating func end() {
    _ = fixture.machine.beginEpoch()
    _ = fixture.machine.receiveInner(.finished, epoch: 1)
    fixture.drain()
    #expect(fixture.heard.elements == [])
    fixture.machine.finishOuter()
    fixture.machine.finishOuter()
    fixture.drain()
    #expect(fixture.heard.elements == ["end"])

    var other = Fixture()
    _ = other.machine.beginEpoch()
    other.machine.finishOuter()
    _ = other.machine.receiveInner(.element(1), epoch: 1)
    other.drain()
    #expect(other.heard.elements == ["1"])
    _ = other.machine.receiveInner(.finished, epoch: 1)
    other.drain()
    #expect(other.heard.elements == ["1", "end"])
  }

  @Test("The end of an earlier inner source ends nothing")
  mutating func staleEnd() {
    _ = fixture.machine.beginEpoch()
    _ = fixture.machine.beginEpoch()
    fixture.machine.finishOuter()
    #expect(fixture.machine.receiveInner(.finished, epoch: 1) == nil)
    fixture.drain()
    #expect(fixture.heard.elements == [])
  }

  @Test("An outer source that ends without an element ends it")
  mutating func emptyOuter() {
    fixture.machine.finishOuter()
    fixture.drain()
    #expect(fixture.heard.elements == ["end"])
  }

  @Test("A cancel gives the inner subscription back, and nothing counts after it")
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

  @Test("An outer element that was on its way during a cancel begins no epoch")
  mutating func elementAfterCancel() {
    _ = fixture.machine.cancel()
    #expect(fixture.machine.beginEpoch() == nil)
  }
}
