import Testing

@testable import ReactiveStreams

@Suite("SubscriberList")
struct SubscriberListTests {
  private var list = SubscriberList<Int>()

  private func subscriber() -> Subscriber<Int> { Subscriber { _ in } }

  @Test("Identifiers grow, and never come again")
  mutating func identifiers() {
    #expect(list.append(subscriber()) == 0)
    #expect(list.append(subscriber()) == 1)
    #expect(list.remove(1) != nil)
    #expect(list.remove(0) != nil)
    #expect(list.append(subscriber()) == 2)
    #expect(list.nextID == 3)
    #expect(list.count == 1)
  }

  @Test("A removal gives back the subscriber that was appended, once")
  mutating func removal() {
    let subscribers = (0..<5).map { _ in subscriber() }
    let ids = subscribers.map { list.append($0) }
    for (id, subscriber) in zip(ids, subscribers) {
      #expect(list.remove(id) === subscriber)
      #expect(list.remove(id) == nil)
    }
    #expect(list.count == 0)
    #expect(list.seats.slots.isEmpty)
  }

  @Test("An identifier that was never given removes nobody")
  mutating func stranger() {
    #expect(list.remove(0) == nil)
    _ = list.append(subscriber())
    #expect(list.remove(1) == nil)
    #expect(list.remove(.max) == nil)
    #expect(list.count == 1)
  }

  @Test("Those who were lent come back before those who came meanwhile")
  mutating func lending() {
    for _ in 0..<3 { _ = list.append(subscriber()) }
    var lent = list.lend()
    #expect(list.count == 3)
    #expect(list.seats.slots.isEmpty)
    let new = subscriber()
    #expect(list.append(new) == 3)
    #expect(list.count == 4)
    list.takeBack(&lent)
    #expect(list.count == 4)
    #expect(list.seats.slots.map(\.id) == [0, 1, 2, 3])
    #expect(list.remove(3) === new)
  }

  @Test("One that goes while it is lent is not given, not counted, and left to who gives it back")
  mutating func departure() {
    let subscribers = (0..<3).map { _ in subscriber() }
    for subscriber in subscribers { _ = list.append(subscriber) }
    var lent = list.lend()
    _ = list.append(subscriber())
    #expect(list.remove(1) == nil)
    #expect(list.count == 3)
    list.takeBack(&lent)
    #expect(list.seats.slots.compactMap { $0.element == nil ? nil : $0.id } == [0, 2, 3])
    #expect(lent.count == 1)
    #expect(lent.slots.first?.element?.subscriber === subscribers[1])
    #expect(list.count == 3)
    #expect(list.remove(0) === subscribers[0])
  }

  @Test("Holes are swept when they are half of the list")
  mutating func sweep() {
    let ids = (0..<32).map { _ in list.append(subscriber()) }
    for id in ids.prefix(15) { _ = list.remove(id) }
    #expect(list.seats.slots.count == 32)
    _ = list.remove(ids[15])
    #expect(list.seats.slots.count == 16)
    #expect(list.seats.slots.allSatisfy { $0.element != nil })
    #expect(list.count == 16)
  }

  @Test("A short list keeps its holes until it is empty")
  mutating func shortList() {
    let ids = (0..<15).map { _ in list.append(subscriber()) }
    for id in ids.dropLast() { _ = list.remove(id) }
    #expect(list.seats.slots.count == 15)
    #expect(list.count == 1)
    _ = list.remove(ids[14])
    #expect(list.seats.slots.isEmpty)
  }

  @Test("It behaves as a sorted dictionary does, whatever the mixture", arguments: [2, 5, 8])
  mutating func mixture(appends: Int) {
    var generator = SeededGenerator(seed: UInt64(appends))
    var model: [(id: UInt64, subscriber: Subscriber<Int>)] = []
    for _ in 0..<2_000 {
      if Int.random(in: 0..<10, using: &generator) < appends {
        let subscriber = subscriber()
        model.append((list.append(subscriber), subscriber))
      } else if let index = model.indices.randomElement(using: &generator) {
        let (id, subscriber) = model.remove(at: index)
        #expect(list.remove(id) === subscriber)
      }
      let present = list.seats.slots.compactMap { slot in
        slot.element.map { (slot.id, $0.subscriber) }
      }
      #expect(list.count == model.count)
      #expect(present.elementsEqual(model) { $0.0 == $1.id && $0.1 === $1.subscriber })
    }
  }

  @Test("What is removed lives as long as the caller keeps it, and no longer")
  mutating func release() {
    let live = LiveCount()
    let ids = (0..<40).map { number in list.append(capturing(Counted(number, in: live))) }
    for (index, id) in ids.enumerated() {
      var removed = list.remove(id)
      #expect(live.now == 40 - index)
      #expect(removed != nil)
      removed = nil
      #expect(live.now == 39 - index)
    }
  }

  private func capturing(_ object: Counted) -> Subscriber<Int> {
    Subscriber { _ in _ = object }
  }
}

@Suite("Subscriber")
struct SubscriberTests {
  @Test("It passes events on until it is deactivated, also from inside its call")
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
