import Glibc
import Synchronization
import Testing

@testable import Operation

@Suite("Exclusive access beside runs", .timeLimit(.minutes(1))) struct ExclusiveAccessRunTests {
  @Test("A page run does not begin with what somebody writes who has the store to himself")
  func pageRunInExclusiveAccess() async throws {
    let server = PageServer()
    let store = try await numbers(server)
    store.currentValue = .written(5...6)
    // The next page has its turn when a run of another store has ended.
    let remote = Remote<Int>()
    let other = OperationStore.detached(query: remote.query())
    let task = store.fetchNextPageTask()
    task.schedule(after: other.runTask())
    let next = Task { try await task.runIfNeeded()?.id }
    await remote.wait(forCalls: 1)
    server.close()
    await onThreads(1) { _ in
      store.withExclusiveAccess {
        store.currentValue = []
        remote.answer(1)
        // Until the run has begun, or waits for the end of the access.
        while server.pending.isEmpty, store.read({ $0.exclusive.content.gates.isEmpty }) {
          sched_yield()
        }
        store.currentValue = .written(5...7)
      }
    }
    await server.pending(1)
    server.open()
    #expect(try await next.value == 8)
    #expect(store.currentValue.ids == [5, 6, 7, 8])
  }

  @Test("Who has the store to himself, and cancels what has yielded, finds the confirmed edit")
  func confirmedEditInExclusiveAccess() async throws {
    let remote = Remote<Int>()
    let store = OperationClient(defaults: .testing).store(for: remote.query().neverStale())
    store.currentValue = 1
    let run = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    remote.yield(10)
    await store.optimistically {
      $0? += 100
    } while: {
    }
    #expect(store.currentValue == 110 && store.confirmedValue == 110 && !store.isOptimistic)
    let seen = store.withExclusiveAccess {
      store.cancel()
      let seen = store.currentValue
      store.currentValue? += 1
      return seen
    }
    #expect(seen == 101)
    #expect(store.currentValue == 102)
    await #expect(throws: CancellationError.self) { try await run.value }
  }

  @Test("What reads a request that is invalidated in exclusive access gets no old value of it")
  func invalidationInExclusiveAccess() async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let server = Atomic(1)
    let read = Recorder<Int>()
    let base = Query(path: ["base"]) { _ in server.load(ordering: .acquiring) }.neverStale()
    let reader = Query(path: ["reader"]) { context in
      let value = try await context.ensure(base)
      read.append(value)
      return value
    }.neverStale()
    let (baseStore, readerStore) = (client.store(for: base), client.store(for: reader))
    let subscription = readerStore.subscribe { _ in }
    await readerStore.settles { $0.currentValue == 1 && !$0.isLoading }
    server.store(2, ordering: .releasing)
    await onThreads(1) { _ in
      baseStore.withExclusiveAccess {
        baseStore.invalidate()
        // If its run has begun, until the reader has read, or waits for the end of the access.
        while readerStore.isLoading, read.count < 2,
          baseStore.read({ $0.exclusive.content.gates.isEmpty })
        {
          sched_yield()
        }
      }
    }
    await readerStore.settles { !$0.isLoading && !$0.isStale }
    #expect(read.all == [1, 2])
    #expect(readerStore.currentValue == 2)
    withExtendedLifetime(subscription) {}
  }
}
