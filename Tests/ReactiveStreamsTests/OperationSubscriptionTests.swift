import Testing

@testable import ReactiveStreams

@Suite("OperationSubscription")
struct OperationSubscriptionTests {
  private let cancelled = Recorder<String>()

  private func subscription(_ name: String = "a") -> OperationSubscription {
    OperationSubscription { [cancelled] in cancelled.record(name) }
  }

  @Test("Several calls of cancel() cancel once")
  func once() {
    let subscription = subscription()
    #expect(cancelled.elements == [])
    subscription.cancel()
    subscription.cancel()
    #expect(cancelled.elements == ["a"])
  }

  @Test("A copy is the same subscription")
  func copy() {
    let subscription = subscription()
    let copy = subscription
    #expect(copy == subscription)
    #expect(copy.hashValue == subscription.hashValue)
    copy.cancel()
    subscription.cancel()
    #expect(cancelled.elements == ["a"])
    #expect(self.subscription() != subscription)
  }

  @Test("It cancels when its last copy is released, and not before")
  func lastCopy() {
    var copies = Optional(Array(repeating: subscription(), count: 3))
    copies?.removeLast()
    copies?.removeLast()
    #expect(cancelled.elements == [])
    copies = nil
    #expect(cancelled.elements == ["a"])
  }

  @Test("A cancelled subscription does not cancel again when it is released")
  func cancelledThenDropped() {
    subscription().cancel()
    #expect(cancelled.elements == ["a"])
  }

  @Test("Its closure is released when it is cancelled, not when the subscription is released")
  func release() {
    let live = LiveCount()
    let held = Box<Counted?>(Counted(in: live))
    let subscription = OperationSubscription { [object = held.exchange(nil)] in _ = object }
    #expect(live.now == 1)
    subscription.cancel()
    #expect(live.now == 0)
  }

  @Test("Concurrent cancels call once", arguments: 0..<200)
  func concurrent(round: Int) {
    let calls = Box(0)
    let subscription = OperationSubscription { calls.increment() }
    let ended = onThreads(8) { _ in subscription.cancel() }
    #expect(ended)
    #expect(calls.value == 1)
  }

  @Test("Its closure may cancel it and release its last copy")
  func reentrant() {
    let box = Box<OperationSubscription?>(nil)
    box.exchange(
      OperationSubscription { [cancelled] in
        cancelled.record("a")
        box.value?.cancel()
        box.cancel()
      })
    box.value?.cancel()
    #expect(cancelled.elements == ["a"])
    #expect(box.value == nil)
  }

  @Test("A combined subscription cancels its members in their order, once")
  func combined() {
    let members = ["a", "b", "c"].map(subscription)
    let combined = OperationSubscription.combined(members)
    members[1].cancel()
    combined.cancel()
    combined.cancel()
    #expect(cancelled.elements == ["b", "a", "c"])
  }

  @Test("A combined subscription that is released cancels its members, also copied ones")
  func combinedDropped() {
    let member = subscription()
    var combined = Optional(OperationSubscription.combined(member, subscription("b"), .empty))
    #expect(combined != nil)
    combined = nil
    #expect(cancelled.elements == ["a", "b"])
    member.cancel()
    #expect(cancelled.elements == ["a", "b"])
  }

  @Test("A combined subscription without members cancels nothing")
  func combinedNothing() {
    OperationSubscription.combined([]).cancel()
    OperationSubscription.combined().cancel()
  }

  @Test("A set retains subscriptions, each once")
  func storeInSet() {
    var set: Set<OperationSubscription> = []
    let shared = subscription("shared")
    shared.store(in: &set)
    shared.store(in: &set)
    subscription("b").store(in: &set)
    OperationSubscription.empty.store(in: &set)
    #expect(set.count == 3)
    #expect(cancelled.elements == [])
    set.removeAll()
    #expect(cancelled.elements == ["b"])
    shared.cancel()
    #expect(cancelled.elements == ["b", "shared"])
  }

  @Test("An array retains subscriptions, in their order")
  func storeInArray() {
    var array: [OperationSubscription] = []
    subscription("a").store(in: &array)
    subscription("b").store(in: &array)
    #expect(array.count == 2)
    array.removeFirst()
    #expect(cancelled.elements == ["a"])
    array.removeAll()
    #expect(cancelled.elements == ["a", "b"])
  }

  @Test("The empty subscription equals itself and does nothing")
  func empty() {
    OperationSubscription.empty.cancel()
    OperationSubscription.empty.cancel()
    #expect(OperationSubscription.empty == .empty)
    #expect(OperationSubscription.empty != subscription())
    #expect(cancelled.elements == ["a"])
  }
}
