import TestSupport
import Testing

@testable import ReactiveStreams

/// The events of the machine.
private enum Step: CaseIterable {
  case subscribe, subscribeInitially, subscribeForNewest, unsubscribeOldest, unsubscribeNewest
  case append, appendAlso, appendState, notifyOldest, drain, perform, dropPending
}

/// The machine beside a simple model of it that stores the names of all recipients.
private struct Pair {
  private struct Pending {
    let event: Int
    let recipients: [Int]
    /// The number of subscriptions until then, if a later state can replace this one.
    var replaceableAt: Int?
  }

  private struct Subscription {
    let name: Int
    let id: UInt64
    let subscriber: Subscriber<Int>
  }

  private var queue = DeliveryQueue<Int>()
  private let calls = Recorder<[Int]>()
  private var taken = Delivery<Int>()

  private var subscriptions: [Subscription] = []
  private var removed: Set<Int> = []
  private var pending: [Pending] = []
  private var takenPending: Pending?
  private var expectedCalls: [[Int]] = []
  private var nextNumber = 0
  private var subscriptionCount = 0
  /// Whether an append has returned another event than the one that it had to replace.
  private var hasReplacedOther = false

  private mutating func number() -> Int {
    nextNumber += 1
    return nextNumber
  }

  private func subscriber(_ name: Int, wantsNewest: Bool = false) -> Subscriber<Int> {
    Subscriber(wantsNewest: wantsNewest) { [calls] event in calls.record([name, event]) }
  }

  /// Takes one step with both, and returns whether they still agree.
  mutating func agrees(after step: Step) -> Bool {
    switch step {
    case .subscribe: subscribe()
    case .subscribeInitially: subscribe(initially: true)
    case .subscribeForNewest: subscribe(wantsNewest: true)
    case .unsubscribeOldest: if !unsubscribe(at: 0) { return false }
    case .unsubscribeNewest: if !unsubscribe(at: subscriptions.count - 1) { return false }
    case .append: append(also: [])
    case .appendAlso: append(also: [number()])
    case .appendState: appendState()
    case .notifyOldest: subscriptions.first.map { notify($0) }
    case .drain: if !beginDraining() { return false }
    case .perform: perform()
    case .dropPending:
      if queue.dropPending().count != pending.count { return false }
      pending = []
    }
    if hasReplacedOther { return false }
    return queue.subscriberCount == subscriptions.count && queue.pendingCount == pending.count
      && taken.hasEvent == (takenPending != nil)
      && calls.elements == expectedCalls
  }

  private mutating func subscribe(initially: Bool = false, wantsNewest: Bool = false) {
    let name = number()
    let event = initially ? number() : nil
    let subscriber = subscriber(name, wantsNewest: wantsNewest)
    let id = queue.subscribe(subscriber, initially: event)
    subscriptionCount += 1
    subscriptions.append(Subscription(name: name, id: id, subscriber: subscriber))
    if let event { pending.append(Pending(event: event, recipients: [name])) }
  }

  private mutating func unsubscribe(at index: Int) -> Bool {
    guard subscriptions.indices.contains(index) else { return true }
    let subscription = subscriptions.remove(at: index)
    removed.insert(subscription.name)
    return queue.unsubscribe(subscription.id) === subscription.subscriber
      && queue.unsubscribe(subscription.id) == nil
  }

  private mutating func append(also names: [Int]) {
    let event = number()
    queue.append(event, also: names.map { subscriber($0) })
    let recipients = names + subscriptions.map(\.name)
    if !names.isEmpty || !subscriptions.allSatisfy(\.subscriber.wantsNewest) {
      pending.append(Pending(event: event, recipients: recipients))
    }
  }

  private mutating func appendState() {
    let event = number()
    let replaced = queue.append(state: event)
    let names = subscriptions.map(\.name)
    if names.isEmpty { return }
    let isReplaceable = subscriptions.allSatisfy(\.subscriber.wantsNewest)
    if isReplaceable, let last = pending.last, last.replaceableAt == subscriptionCount {
      pending.removeLast()
      if replaced != last.event { hasReplacedOther = true }
    } else if replaced != nil {
      hasReplacedOther = true
    }
    pending.append(
      Pending(
        event: event, recipients: names, replaceableAt: isReplaceable ? subscriptionCount : nil))
  }

  private mutating func notify(_ subscription: Subscription) {
    let event = number()
    queue.notify(subscription.subscriber, of: event)
    pending.append(Pending(event: event, recipients: [subscription.name]))
  }

  private mutating func beginDraining() -> Bool {
    let delivery = queue.beginDraining()
    if takenPending != nil { return !delivery.hasEvent }
    taken = delivery
    takenPending = pending.isEmpty ? nil : pending.removeFirst()
    return true
  }

  /// Performs the delivery that was taken, and takes the next one.
  private mutating func perform() {
    guard let model = takenPending else { return }
    taken.perform()
    for name in model.recipients where !removed.contains(name) {
      expectedCalls.append([name, model.event])
    }
    _ = queue.takeNext(into: &taken)
    takenPending = pending.isEmpty ? nil : pending.removeFirst()
  }
}

@Suite("DeliveryQueue, every sequence")
struct DeliveryQueueExhaustiveTests {
  @Test("It agrees with a simple model in every sequence of up to five events")
  func everySequence() {
    exhaust("DeliveryQueue", events: Step.allCases, length: 5, making: Pair.init) { pair, step in
      try mustHold(pair.agrees(after: step), "the queue and its model agree")
      return true
    }
  }

  @Test("It agrees with a simple model in two thousand random sequences of sixty events")
  func randomSequences() {
    var generator = SeededGenerator(seed: 3)
    for _ in 0..<2_000 {
      let steps = (0..<60).map { _ in Step.allCases.randomElement(using: &generator) ?? .append }
      var pair = Pair()
      guard steps.allSatisfy({ pair.agrees(after: $0) }) else {
        Issue.record("the queue and its model differ in \(steps)")
        return
      }
    }
  }
}
