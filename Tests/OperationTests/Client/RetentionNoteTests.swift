import FoundationEssentials
import Synchronization
import Testing

@testable import Operation

/// A manual clock whose next reading takes long, as it may on any thread.
private final class SlowClock: OperationClock {
  let base = ManualClock()
  let (isHeld, mayContinue) = (Latch(), ThreadLatch())
  private let isSlow = Atomic(false)

  func holdNextReading() { isSlow.store(true, ordering: .releasing) }

  func now() -> Date { base.now() }

  func elapsed() -> Duration {
    let elapsed = base.elapsed()
    if isSlow.exchange(false, ordering: .acquiringAndReleasing) {
      isHeld.open()
      mayContinue.wait()
    }
    return elapsed
  }

  func sleep(for duration: Duration) async throws { try await base.sleep(for: duration) }

  func schedule(
    after duration: Duration, _ action: @escaping @Sendable () -> Void
  ) -> OperationSubscription {
    base.schedule(after: duration, action)
  }
}

@Suite("The end of a use", .timeLimit(.minutes(5))) struct RetentionNoteTests {
  @Test("A store whose use has just ended is not evicted before the end is recorded")
  func notNotedYet() async {
    let clock = SlowClock()
    let client = OperationClient(
      defaults: .testing, clock: clock, retention: .unusedFor(.seconds(300)))
    let store = client.store(for: Query<Int, any Error>(path: ["number"]) { _ in 1 }.neverStale())
    store.currentValue = 1
    let subscription = store.subscribe { _ in }
    await clock.base.advance(by: .seconds(299))
    clock.holdNextReading()
    async let end: Void = onThreads(1) { _ in subscription.cancel() }
    await clock.isHeld.wait()
    #expect(store.subscriberCount == 0)
    await clock.base.advance(by: .seconds(1))
    #expect(client.retains(["number"]))
    clock.mayContinue.open()
    await end
    // Five minutes after the recorded end.
    await clock.base.advance(by: .seconds(298))
    #expect(client.retains(["number"]))
    await clock.base.advance(by: .seconds(1))
    #expect(!client.retains(["number"]))
  }
}
