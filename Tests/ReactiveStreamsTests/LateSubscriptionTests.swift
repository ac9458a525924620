import Synchronization
import Testing

@testable import ReactiveStreams

@Suite("LateSubscription") struct LateSubscriptionTests {
  private final class Count: Sendable {
    private let count = Atomic(0)
    var value: Int { count.load(ordering: .relaxed) }
    var subscription: OperationSubscription {
      OperationSubscription { self.count.wrappingAdd(1, ordering: .relaxed) }
    }
  }

  @Test("A subscription that comes before the cancellation ends with it, once")
  func cancelled() {
    let (place, count) = (LateSubscription(), Count())
    place.set(count.subscription)
    #expect(count.value == 0)
    place.cancel()
    place.cancel()
    #expect(count.value == 1)
  }

  @Test("A subscription that comes after the cancellation ends at once, also while it is retained")
  func late() {
    let (place, count) = (LateSubscription(), Count())
    place.cancel()
    let subscription = count.subscription
    place.set(subscription)
    #expect(count.value == 1)
    withExtendedLifetime(subscription) {}
  }

  @Test("A subscription ends with its place")
  func released() {
    let count = Count()
    do {
      let place = LateSubscription()
      place.set(count.subscription)
      #expect(count.value == 0)
    }
    #expect(count.value == 1)
  }
}
