import Dispatch
import Foundation
@testable import Operation
import Testing

/// Other writers, late subscribers, readers and pages beside edits of a value.
@Suite(.timeLimit(.minutes(5))) struct OptimisticOrderTests {
  private let client = OperationClient(defaults: .testing, clock: ManualClock())

  @Test("A subscriber inside exclusive access is notified of the value that other threads read")
  func subscribesInExclusiveAccess() async {
    let store = client.store(for: Query(path: ["number"]) { _ in 10 }.neverStale())
    store.currentValue = 1
    await store.optimistically {
      $0? += 100
    } while: {
      let (events, subscription) = store.withExclusiveAccess {
        store.currentValue = 2
        let recorded = store.record()
        #expect(recorded.0.names() == ["state 101"])
        return recorded
      }
      #expect(events.names() == ["state 101", "state 102"])
      withExtendedLifetime(subscription) {}
    }
  }

  @Test("The yield of a cancelled run is undone, and an edit that was confirmed since still counts")
  func countBehindYield() async throws {
    let remote = Remote<Int>()
    let store = client.store(for: remote.query().neverStale())
    store.currentValue = 1
    let run = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    remote.yield(2)
    await store.optimistically {
      $0? += 100
    } while: {
    }
    #expect(store.currentValue == 102 && store.valueUpdateCount == 3)
    run.cancel()
    await #expect(throws: CancellationError.self) { try await run.value }
    #expect(store.currentValue == 101 && store.valueUpdateCount == 2)
  }

  private final class Box: Sendable {
    private let action: @Sendable () -> Void

    init(_ action: @escaping @Sendable () -> Void) { self.action = action }
    deinit { action() }
  }

  @Test("A value that is replaced below an edit is released once the waiting writers can continue")
  func releasedOutside() async {
    let store = OperationStore.detached(query: Query(path: ["box"]) { _ in Box {} })
    let (lock, frees, calls) = (DispatchSemaphore(value: 1), EventLog<Bool>(), Counter())
    let written = Latch()
    await store.optimistically { [unowned store] value in
      calls.increment()
      guard calls.value < 3 else { return }
      value = Box {
        let isFree = lock.wait(timeout: .now() + 5) == .success
        if isFree { lock.signal() }
        frees.append(isFree)
      }
      guard calls.value == 2 else { return }
      Thread.detachNewThread {
        lock.wait()
        store.setResult(to: .failure(Failed()))
        lock.signal()
        written.open()
      }
      while store.read({ $0.access?.gates.isEmpty ?? true }) { sched_yield() }
    } while: {
      store.setResult(to: .success(Box {}))
      await written.wait()
    }
    #expect(frees.values.first == true)
  }

  /// The pages of a server that counts likes.
  private final class Feed: Sendable {
    let likes = Monitor<[Int: Int]>([:])
    let gates = Monitor<[Int: AsyncGate]>([:])
    let began = EventLog<Int>()
    let hints = Monitor<[Int: Int]>([:])

    func request() -> some PaginatedRequest<Int, Int> {
      Paginated<Int, Int>(
        path: ["feed"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 }
      ) { [self] paging, _, continuation in
        began.append(paging.pageId)
        if let hint = hints.value[paging.pageId] { continuation.yield(hint) }
        await gates.value[paging.pageId]?.wait()
        return likes.value[paging.pageId, default: 0]
      }
    }
  }

  @Test("A refetch that is still queued when an edit succeeds contains the edit in its result")
  func waitingRun() async throws {
    let feed = Feed()
    let store = client.store(for: feed.request().neverStale())
    try await store.fetchNextPage()
    let gate = AsyncGate()
    feed.gates.update { $0[1] = gate }
    async let next = store.fetchNextPage()
    await feed.began.wait(for: 2)
    async let all = store.fetchAllPages()
    await store.settles { $0.leaseCount == 2 }
    await store.optimistically {
      $0[id: 0]?.value += 1
    } while: {
      feed.likes.update { $0[0] = 1 }
    }
    #expect(store.currentValue.map(\.value) == [1])
    gate.open()
    _ = try await (next, all)
    #expect(store.currentValue.map(\.value) == [1, 0])
  }

  @Test("A page that a refetch yields removes no confirmed edit from the other pages")
  func partialYield() async throws {
    let feed = Feed()
    let store = client.store(for: feed.request().neverStale())
    try await store.fetchNextPage()
    try await store.fetchNextPage()
    await store.optimistically {
      $0[id: 0]?.value += 10
    } while: {
      await store.optimistically {
        $0[id: 1]?.value += 1
      } while: {
        feed.likes.update { $0[1] = 1 }
      }
      #expect(store.currentValue.map(\.value) == [10, 1])
      let gate = AsyncGate()
      feed.gates.update { $0[0] = gate }
      feed.hints.update { $0[0] = 7 }
      async let all = store.fetchAllPages()
      await store.settles { $0.currentValue.first?.value == 17 }
      #expect(store.currentValue.map(\.value) == [17, 1])
      gate.open()
      _ = try? await all
      #expect(store.currentValue.map(\.value) == [10, 1])
    }
  }

  @Test("A value that an edit has removed is missing, and is fetched") func removedByEdit() async {
    let client = OperationClient(defaults: .testing)
    let request = Query(path: ["q"]) { _ in 7 }.neverStale()
    let store = client.store(for: request, initialValue: 1)
    await store.optimistically {
      $0 = nil
    } while: {
    }
    #expect(store.isStale && client.stores(matching: [], where: .stale).count == 1)
    await client.prefetch(request)
    #expect(store.currentValue == 7)
  }

  @Test("A value of a mutation that was removed is missing") func removedResult() {
    let client = OperationClient(defaults: .testing)
    let store = client.store(
      for: Mutation<Int, Int>(path: ["mutation"]) { number, _ in number }.neverStale(),
      initialValue: 1)
    #expect(!store.isStale)
    store.currentValue = nil
    #expect(store.isStale)
  }

  @Test("ensure returns the displayed value, with a pending edit") func ensuredEdit() async throws {
    let client = OperationClient(defaults: .testing)
    let request = Query<Int, any Error>(path: ["edited"]) { _ in 7 }.neverStale()
    let store = client.store(for: request, initialValue: 1)
    let ensured = try await store.optimistically {
      $0 = 2
    } while: {
      try await client.ensure(request)
    }
    #expect(ensured == 2)
  }
}
