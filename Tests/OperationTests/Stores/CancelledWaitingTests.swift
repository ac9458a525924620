import Foundation
@testable import Operation
import Synchronization
import Testing

/// Runs that wait for others when all of them are cancelled together.
@Suite(.timeLimit(.minutes(5))) struct CancelledWaitingTests {
  @Test("A waiter for the end of a run that is notified but not launched yet takes no lease on it")
  func waitingForWhatIsAboutToBegin() async throws {
    let remote = Remote<Int>()
    let store = OperationStore.detached(query: remote.query())
    let waiting = Mutex<Task<Void, Never>?>(nil)
    let subscription = store.subscribe { event in
      guard case .runStarted = event, let task = store.activeTasks.first else { return }
      // Runs until it suspends, which is before the caller of the run suspends.
      let end = Task.immediate { await task.dependency.wait() }
      waiting.withLock { $0 = end }
    }
    let caller = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    #expect(store.leaseCount == 1)
    remote.answer(1)
    #expect(try await caller.value == 1)
    await waiting.withLock { $0 }?.value
    subscription.cancel()
  }

  @Test(
    "A run that waits for a cancelled run does not call its request, even if it is cancelled later",
    arguments: [true, false])
  func waiting(isReset: Bool) async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let (calls, hasContinued) = (EventLog<OperationTaskID?>(), ThreadLatch())
    let query = Query<Int, any Error>(path: ["number"]) { context in
      switch calls.append(context.operationRun?.id) {
      case 1: try await ManualClock().sleep(for: .seconds(1))
      case 2:
        // Blocks the thread that cancels, after the first run and before the last one.
        try await withTaskCancellationHandler {
          try await ManualClock().sleep(for: .seconds(1))
        } onCancel: {
          hasContinued.wait()
        }
      default: hasContinued.open()
      }
      return 1
    }.deduplicated { _, _ in false }
    let store = client.store(for: query)
    let tasks = (0..<3).map { _ in store.runTask() }
    tasks[2].schedule(after: tasks[0])
    let watch = client.hub.events.subscribe { event in
      if case .runEnded(let run, _, _) = event.occurrence, run.id == tasks[2].id {
        hasContinued.open()
      }
    }
    var runs: [Task<Int, any Error>] = []
    for (count, task) in tasks.enumerated() {
      runs.append(Task { try await task.runIfNeeded() })
      await store.settles { $0.leaseCount == count + 1 }
      await calls.wait(for: min(count + 1, 2))
    }
    let isDone = Latch()
    Thread.detachNewThread {
      if isReset { store.resetState() } else { store.cancel() }
      isDone.open()
    }
    await isDone.wait()
    for run in runs { await #expect(throws: CancellationError.self) { try await run.value } }
    #expect(calls.values == [tasks[0].id, tasks[1].id])
    watch.cancel()
  }
}
