import Testing

@testable import Operation

/// Runs each job at once, on the thread that enqueues it: what awaits continues where it is resumed.
private final class InlineExecutor: TaskExecutor {
  func enqueue(_ job: consuming ExecutorJob) {
    UnownedJob(job).runSynchronously(on: asUnownedTaskExecutor())
  }
}

private final class Owner: Sendable {}

@Suite("The release of a storage", .timeLimit(.minutes(1)))
struct StorageReleaseTests {
  @Test("When a flush returns, nothing in the library retains the storage any more")
  func flush() async {
    let isReleased = await Task(executorPreference: InlineExecutor()) {
      weak var released: MemoryStorage?
      do {
        let storage = MemoryStorage()
        released = storage
        let writer = StorageWriter(storage, clock: SystemClock(), delay: .seconds(3_600))
        // As of a store, which retains the writer.
        let item = SavedItem(key: "values/a", owner: ObjectIdentifier(writer)) {
          withExtendedLifetime(writer) { SavedChange(entry: nil) }
        }
        writer.note(item)
        try? await writer.flush()
        #expect(!writer.isPending("values/a"))
      }
      return released == nil
    }.value
    #expect(isReleased)
  }

  @Test("A timer that is cancelled releases its action at once")
  func timer() {
    let clocks: [any OperationClock] = [SystemClock(), ManualClock()]
    for clock in clocks {
      weak var released: Owner?
      let subscription: OperationSubscription
      do {
        let owner = Owner()
        released = owner
        subscription = clock.schedule(after: .seconds(3_600)) { withExtendedLifetime(owner) {} }
      }
      #expect(released != nil)
      subscription.cancel()
      #expect(released == nil)
    }
  }
}
