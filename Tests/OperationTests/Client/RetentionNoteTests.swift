import FoundationEssentials
import Synchronization
import Testing

@testable import Operation

/// A manual clock whose next look at the time takes long, as it may for any thread.
private final class SlowClock: OperationClock {
  let base = ManualClock()
  let (isHeld, mayGoOn) = (Latch(), ThreadLatch())
  private let isSlow = Atomic(false)

  func holdNextLook() { isSlow.store(true, ordering: .releasing) }

  func now() -> Date {
    let now = base.now()
    if isSlow.exchange(false, ordering: .acquiringAndReleasing) {
      isHeld.open()
      mayGoOn.wait()
    }
    return now
  }

  func sleep(for duration: Duration) async throws { try await base.sleep(for: duration) }

  func schedule(
    after duration: Duration, _ action: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    base.schedule(after: duration, action)
  }
}

@Suite("The end of a use", .timeLimit(.minutes(1))) struct RetentionNoteTests {
  @Test("A store whose use has just ended does not leave before that has been noted")
  func notNotedYet() async {
    let clock = SlowClock()
    let client = OperationClient(
      defaults: .testing, clock: clock, retention: .unusedFor(.seconds(300)))
    let store = client.store(for: Query<Int, any Error>(path: ["number"]) { _ in 1 }.neverStale())
    store.currentValue = 1
    let subscription = store.subscribe { _ in }
    await clock.base.advance(by: .seconds(299))
    clock.holdNextLook()
    async let end: Void = onThreads(1) { _ in subscription.cancel() }
    await clock.isHeld.wait()
    #expect(store.subscriberCount == 0)
    await clock.base.advance(by: .seconds(1))
    #expect(client.store(with: ["number"]) != nil)
    clock.mayGoOn.open()
    await end
    // It leaves when that use is five minutes past, and not later than five after the look at it.
    await clock.base.advance(by: .seconds(600))
    #expect(client.store(with: ["number"]) == nil)
  }
}
