import TestSupport
import Testing

@testable import ReactiveStreams

/// What the machine can be told.
private enum Step: CaseIterable {
  case subscribe, subscribeInitially, unsubscribeOldest, unsubscribeNewest
  case append, appendAlso, drain, tell, tellAll, perform, dropPending
}

/// The machine beside a model of it, that is written for clarity and keeps whole lists.
private struct Pair {
  private struct Pending {
    let event: Int
    let audience: [Int]
  }

  private var queue = DeliveryQueue<Int>()
  private let calls = Recorder<[Int]>()
  private var taken: Delivery<Int>?
  private var lent: Audience<Int>?

  private struct Listener {
    let name: Int
    let id: UInt64
    let subscriber: Subscriber<Int>
  }

  private var listeners: [Listener] = []
  private var gone: Set<Int> = []
  private var pending: [Pending] = []
  private var takenPending: Pending?
  private var lentNames: [Int]?
  private var isTelling = false
  private var expectedCalls: [[Int]] = []
  private var nextNumber = 0

  private mutating func number() -> Int {
    nextNumber += 1
    return nextNumber
  }

  private func subscriber(_ name: Int) -> Subscriber<Int> {
    Subscriber { [calls] event in calls.record([name, event]) }
  }

  /// Takes one step with both, and tells whether they still agree.
  mutating func agrees(after step: Step) -> Bool {
    switch step {
    case .subscribe: subscribe(initially: false)
    case .subscribeInitially: subscribe(initially: true)
    case .unsubscribeOldest: if !unsubscribe(at: 0) { return false }
    case .unsubscribeNewest: if !unsubscribe(at: listeners.count - 1) { return false }
    case .append: append(also: [])
    case .appendAlso: append(also: [number()])
    case .drain: if !beginDraining() { return false }
    case .tell: if !beginTelling() { return false }
    case .tellAll: if !beginTellingAll() { return false }
    case .perform: if !perform() { return false }
    case .dropPending:
      if queue.dropPending().count != pending.count { return false }
      pending = []
    }
    return queue.subscriberCount == listeners.count && queue.pendingCount == pending.count
      && (taken == nil) == (takenPending == nil) && calls.elements == expectedCalls
  }

  private mutating func subscribe(initially: Bool) {
    let name = number()
    let event = initially ? number() : nil
    let subscriber = subscriber(name)
    let id = queue.subscribe(subscriber, initially: event)
    listeners.append(Listener(name: name, id: id, subscriber: subscriber))
    if let event { pending.append(Pending(event: event, audience: [name])) }
  }

  private mutating func unsubscribe(at index: Int) -> Bool {
    guard listeners.indices.contains(index) else { return true }
    let listener = listeners.remove(at: index)
    gone.insert(listener.name)
    if lentNames?.contains(listener.name) == true {
      listener.subscriber.deactivate()
      return queue.unsubscribe(listener.id) == nil
    }
    return queue.unsubscribe(listener.id) === listener.subscriber
      && (lent != nil || queue.unsubscribe(listener.id) == nil)
  }

  private mutating func append(also names: [Int]) {
    let event = number()
    queue.append(event, also: names.map(subscriber))
    let audience = names + listeners.map(\.name)
    if !audience.isEmpty { pending.append(Pending(event: event, audience: audience)) }
  }

  private mutating func beginDraining() -> Bool {
    let delivery = queue.beginDraining()
    if isTelling || takenPending != nil { return delivery == nil }
    taken = delivery
    takenPending = pending.isEmpty ? nil : pending.removeFirst()
    return true
  }

  private mutating func beginTelling() -> Bool {
    let isFree = !isTelling && takenPending == nil && pending.isEmpty
    isTelling = isTelling || isFree
    return queue.beginTelling() == isFree
  }

  private mutating func beginTellingAll() -> Bool {
    let isFree = !isTelling && takenPending == nil && pending.isEmpty && !listeners.isEmpty
    guard queue.beginTellingAll() == isFree else { return false }
    lent = lent ?? queue.lendAudience()
    if isFree { lentNames = listeners.map(\.name) }
    isTelling = isTelling || isFree
    return (lent == nil) == (lentNames == nil)
  }

  /// The event of the one who tells all, and the audience is back: those who have gone are left.
  private mutating func tellAll(_ names: [Int]) -> Bool {
    guard var audience = lent else { return false }
    let event = number()
    audience.hear(event)
    expectedCalls += names.filter { !gone.contains($0) }.map { [$0, event] }
    taken = queue.takeNext(returning: &audience)
    (lent, lentNames) = (nil, nil)
    return audience.seats.count == names.filter(gone.contains).count
  }

  /// Only the drainer can do this: it calls who is to be called, and takes the next delivery.
  private mutating func perform() -> Bool {
    if let delivery = taken, let model = takenPending {
      delivery.perform()
      for name in model.audience where !gone.contains(name) {
        expectedCalls.append([name, model.event])
      }
    } else if !isTelling {
      return true
    }
    isTelling = false
    if let lentNames {
      if !tellAll(lentNames) { return false }
    } else {
      taken = queue.takeNext()
    }
    takenPending = pending.isEmpty ? nil : pending.removeFirst()
    return true
  }
}

@Suite("DeliveryQueue, every sequence")
struct DeliveryQueueExhaustiveTests {
  @Test("It does what a plain model does, in every sequence of up to five events")
  func everySequence() {
    exhaust("DeliveryQueue", events: Step.allCases, length: 5, making: Pair.init) { pair, step in
      try mustHold(pair.agrees(after: step), "the queue and its model part")
      return true
    }
  }

  @Test("It does what a plain model does, in two thousand random sequences of sixty events")
  func randomSequences() {
    var generator = SeededGenerator(seed: 3)
    for _ in 0..<2_000 {
      let steps = (0..<60).map { _ in Step.allCases.randomElement(using: &generator) ?? .append }
      var pair = Pair()
      guard steps.allSatisfy({ pair.agrees(after: $0) }) else {
        Issue.record("they part in \(steps)")
        return
      }
    }
  }
}
