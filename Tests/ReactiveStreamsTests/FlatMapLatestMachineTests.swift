import TestSupport
import Testing

@testable import ReactiveStreams

/// The machine with a subscriber that records its signals; the end is recorded as "end".
private struct Fixture {
  var machine = FlatMapLatestMachine<Int>()
  /// The epochs that have begun, behind one that never did.
  var epochs = [StreamEpoch()]
  let received = Recorder<String>()

  init() {
    _ = machine.deliveries.subscribe(
      Subscriber { [received] signal in received.record(signal.element.map(String.init) ?? "end") })
  }

  @discardableResult mutating func begin() -> FlatMapLatestMachine<Int>.Beginning? {
    let beginning = machine.beginEpoch()
    if let beginning { epochs.append(beginning.epoch) }
    return beginning
  }

  mutating func drain() {
    machine.deliveries.deliver()
  }
}

@Suite("FlatMapLatestMachine")
struct FlatMapLatestMachineTests {
  private var fixture = Fixture()

  @Test("Every outer element begins an epoch, and returns the epoch that it ends")
  mutating func epochs() {
    let beginnings = (0..<3).compactMap { _ in fixture.begin() }
    #expect(Set(beginnings.map { ObjectIdentifier($0.epoch) }).count == 3)
    #expect(beginnings[0].earlier == nil)
    #expect(beginnings[2].earlier === beginnings[1].epoch)
  }

  @Test("An element carries its epoch, and an epoch ends with that of its outer element")
  mutating func carriedEpochs() {
    let outer = StreamEpoch()
    let carried = Recorder<Bool>()
    let epoch = fixture.machine.beginEpoch(within: outer)?.epoch ?? StreamEpoch()
    let inner = StreamEpoch()
    _ = fixture.machine.deliveries.subscribe(
      Subscriber { signal in
        guard case .element(_, let own) = signal else { return }
        carried.record(own?.isOver ?? true)
        inner.end()
        carried.record(own?.isOver ?? false)
      })
    _ = fixture.machine.receiveInner(.element(1, in: inner), epoch: epoch)
    fixture.drain()
    #expect(carried.elements == [false, true])
    #expect(!epoch.isOver)
    outer.end()
    #expect(epoch.isOver)
  }

  @Test("Inner signals before the first epoch are ignored")
  mutating func beforeFirst() {
    #expect(fixture.machine.receiveInner(.element(1), epoch: fixture.epochs[0]) == nil)
    #expect(fixture.machine.receiveInner(.finished, epoch: fixture.epochs[0]) == nil)
    #expect(fixture.machine.deliveries.pendingCount == 0)
  }

  @Test("Elements of the present epoch are delivered, those of an earlier epoch are not")
  mutating func staleElements() {
    fixture.begin()
    _ = fixture.machine.receiveInner(.element(1), epoch: fixture.epochs[1])
    fixture.drain()
    fixture.begin()
    _ = fixture.machine.receiveInner(.element(2), epoch: fixture.epochs[1])
    _ = fixture.machine.receiveInner(.element(3), epoch: fixture.epochs[2])
    fixture.drain()
    #expect(fixture.received.elements == ["1", "3"])
  }

  @Test("A new epoch returns the earlier subscription and drops queued elements")
  mutating func newEpoch() {
    let first = fixture.begin()
    _ = fixture.machine.receiveInner(.element(1), epoch: fixture.epochs[1])
    let second = fixture.begin()
    #expect(first?.earlierInner == nil)
    #expect(second?.earlierInner === first?.inner && second?.inner !== first?.inner)
    #expect(second?.dropped.count == 1)
    fixture.drain()
    #expect(fixture.received.elements == [])
  }

  @Test("The end of an inner source returns its subscription, and later elements are ignored")
  mutating func innerEnd() {
    let beginning = fixture.begin()
    let ended = fixture.machine.receiveInner(.finished, epoch: fixture.epochs[1])
    #expect(ended != nil && ended === beginning?.inner)
    #expect(fixture.machine.receiveInner(.finished, epoch: fixture.epochs[1]) == nil)
    _ = fixture.machine.receiveInner(.element(1), epoch: fixture.epochs[1])
    fixture.drain()
    #expect(fixture.received.elements == [])
  }

  @Test("It ends when the outer source and the last inner source have ended, in either order")
  mutating func end() {
    fixture.begin()
    _ = fixture.machine.receiveInner(.finished, epoch: fixture.epochs[1])
    fixture.drain()
    #expect(fixture.received.elements == [])
    fixture.machine.finishOuter()
    fixture.machine.finishOuter()
    fixture.drain()
    #expect(fixture.received.elements == ["end"])

    var other = Fixture()
    other.begin()
    other.machine.finishOuter()
    _ = other.machine.receiveInner(.element(1), epoch: other.epochs[1])
    other.drain()
    #expect(other.received.elements == ["1"])
    _ = other.machine.receiveInner(.finished, epoch: other.epochs[1])
    other.drain()
    #expect(other.received.elements == ["1", "end"])
  }

  @Test("The end of an earlier inner source is ignored")
  mutating func staleEnd() {
    fixture.begin()
    fixture.begin()
    fixture.machine.finishOuter()
    #expect(fixture.machine.receiveInner(.finished, epoch: fixture.epochs[1]) == nil)
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
    let beginning = fixture.begin()
    let cancelled = fixture.machine.cancel()
    #expect(cancelled != nil && cancelled === beginning?.inner)
    #expect(fixture.machine.cancel() == nil)
    #expect(fixture.machine.receiveInner(.element(1), epoch: fixture.epochs[1]) == nil)
    #expect(fixture.machine.receiveInner(.finished, epoch: fixture.epochs[1]) == nil)
    fixture.machine.finishOuter()
    #expect(fixture.machine.deliveries.pendingCount == 0)
  }

  @Test("An outer element that arrives after a cancel begins no epoch")
  mutating func elementAfterCancel() {
    _ = fixture.machine.cancel()
    #expect(fixture.machine.beginEpoch() == nil)
  }
}
