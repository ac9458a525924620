import Foundation
@testable import Operation
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct OptimisticStoreTests {
  private let client = OperationClient(defaults: .testing, clock: ManualClock())

  private func store(_ id: Int = 0) -> OperationStore<QueryState<Int, any Error>> {
    client.store(for: Query(path: ["number", id]) { _ in 10 }.neverStale())
  }

  @Test("An edit whose work succeeds displays the value once, without a flicker")
  func kept() async {
    let store = store()
    store.currentValue = 1
    let (events, subscription) = store.record()
    let result = await store.optimistically {
      $0? += 1
    } while: {
      #expect(store.currentValue == 2)
      #expect(store.confirmedValue == 1)
      #expect(store.valueUpdateCount == 2)
      #expect(store.isOptimistic)
      return "done"
    }
    #expect(result == "done")
    #expect(events.all.map(\.name) == ["state 1", "state 2", "state 2"])
    #expect(store.confirmedValue == 2)
    #expect(store.valueUpdateCount == 2)
    #expect(!store.isOptimistic)
    withExtendedLifetime(subscription) {}
  }

  @Test("A value that is not equatable is emitted when it is edited and when the edit is removed")
  func incomparable() async {
    struct Box: Sendable { var number: Int }
    let store = OperationStore.detached(
      query: Query(path: ["box"]) { _ in Box(number: 0) }, initialValue: Box(number: 1))
    var values = store.values.makeAsyncIterator()
    #expect(await values.next()??.number == 1)
    _ = try? await store.optimistically {
      $0?.number += 1
    } while: {
      #expect(await values.next()??.number == 2)
      throw Failed()
    }
    #expect(await values.next()??.number == 1)
  }

  @Test("The failure of the work keeps its type")
  func typedFailure() async {
    let store = store()
    do throws(Failed) {
      try await store.optimistically {
        $0 = 1
      } while: { () async throws(Failed) in
        throw Failed(code: 7)
      }
      Issue.record("nothing was thrown")
    } catch {
      #expect(error.code == 7)
    }
    #expect(store.currentValue == nil)
  }

  @Test("The handler of a run receives the edited values, and the end last")
  func exactHandler() async throws {
    let store = store()
    let recorder = Recorder<OperationEvent<QueryState<Int, any Error>>>()
    try await store.optimistically {
      $0 = ($0 ?? 0) + 1
    } while: {
      _ = try await store.run { recorder.append($0) }
    }
    #expect(recorder.all.map(\.name) == ["started", "state 1…", "state 11", "ended 10"])
    #expect(store.currentValue == 11)
  }

  @Test("The owner of exclusive access reads no pending edits, and writes the base value")
  func exclusive() async throws {
    let store = store()
    store.currentValue = 1
    let (events, subscription) = store.record()
    await store.optimistically {
      $0? += 100
    } while: {
      store.withExclusiveAccess {
        #expect(store.currentValue == 1)
        store.currentValue? += 1
        store.currentValue? += 1
      }
      #expect(store.currentValue == 103)
      #expect(store.confirmedValue == 3)
    }
    #expect(events.all.map(\.name) == ["state 1", "state 101", "state 103", "state 103"])
    withExtendedLifetime(subscription) {}
  }

  @Test("A write while the first edit is computed changes the base value, and does not wait")
  func writtenMeanwhile() async {
    let store = store()
    store.currentValue = 1
    let (events, subscription) = store.record()
    let isFirst = Atomic(true)
    await store.optimistically { [unowned store] value in
      if isFirst.exchange(false, ordering: .relaxed) {
        let written = ThreadLatch()
        Thread.detachNewThread {
          store.currentValue = 5
          written.open()
        }
        written.wait()
      }
      value? += 100
    } while: {
      #expect(store.currentValue == 105 && store.confirmedValue == 5)
    }
    #expect(events.names() == ["state 1", "state 5", "state 105", "state 105"])
    withExtendedLifetime(subscription) {}
  }

  @Test("While an edit is computed, other threads read the earlier value, and write after it")
  func concurrent() async {
    let store = store()
    store.currentValue = 1
    // The first edit is computed without exclusive access, a later one with it.
    let below = store.beginEdit { _ in }
    defer { store.endEdit(below, isSuccess: false) }
    let (entered, proceed, written) = (Latch(), ThreadLatch(), Latch())
    let isFirst = Mutex(true)
    let edited = Latch()
    Thread.detachNewThread {
      let id = store.beginEdit { value in
        if isFirst.withLock({ first in
          defer { first = false }
          return first
        }) {
          entered.open()
          proceed.wait()
        }
        value? += 100
      }
      store.endEdit(id, isSuccess: true)
      edited.open()
    }
    await entered.wait()
    #expect(store.currentValue == 1)
    #expect(store.confirmedValue == 1)
    Thread.detachNewThread {
      store.currentValue = 5
      written.open()
    }
    #expect(store.currentValue == 1)
    proceed.open()
    await written.wait()
    await edited.wait()
    #expect([5, 105].contains(store.currentValue))
  }

  @Test("The computation of an edit that changes its own store ends")
  func selfChanging() async {
    let store = store()
    store.currentValue = 1
    await store.optimistically { [unowned store] value in
      store.currentValue = (store.confirmedValue ?? 0) + 1
      store.withExclusiveAccess { store.currentValue? += 1 }
      value? += 100
    } while: {
      #expect(store.isOptimistic)
    }
    #expect(!store.isOptimistic)
    store.currentValue = 3
    #expect(store.currentValue == 3)
  }

  @Test("The displayed value is confirmed when the last work succeeds, without a call of the edits")
  func confirmedAsShown() async {
    let store = store()
    store.currentValue = 0
    let calls = Counter()
    let (events, subscription) = store.record()
    await store.optimistically {
      calls.increment()
      $0? += calls.value
    } while: {
      await store.optimistically {
        $0? += 10
      } while: {
      }
      #expect(calls.value == 1, "the other edit is applied to the displayed value")
      #expect(store.currentValue == 11)
    }
    #expect(calls.value == 1)
    #expect(store.confirmedValue == 11)
    #expect(store.valueUpdateCount == 3)
    #expect(
      events.all.map(\.name) == ["state 0", "state 1", "state 11", "state 11", "state 11"])
    withExtendedLifetime(subscription) {}
  }

  @Test("An edit that could not be computed on a new value is computed when its work succeeds")
  func confirmedLate() async {
    let store = store()
    store.currentValue = 0
    let calls = Counter()
    await store.optimistically { [unowned store] value in
      calls.increment()
      if 2...9 ~= calls.value { store.currentValue = calls.value }
      value? += 100
    } while: {
      store.currentValue = 5
      #expect(store.currentValue == 100, "each computation of the edit changes its own store")
    }
    #expect(store.confirmedValue == 109)
  }

  @Test("An edit of several stores is removed from all of them when the work fails")
  func client() async throws {
    let stores = [store(1), store(2)]
    let other = client.store(for: Query(path: ["other"]) { _ in 1 }.neverStale())
    for store in stores + [other] { store.currentValue = 1 }
    typealias State = QueryState<Int, any Error>
    await #expect(throws: Failed.self) {
      try await client.optimistically(matching: ["number"], of: State.self) {
        $0? += 1
      } while: {
        #expect(stores.map(\.currentValue) == [2, 2])
        #expect(other.currentValue == 1)
        throw Failed()
      }
    }
    #expect(stores.map(\.currentValue) == [1, 1])
    await client.optimistically(matching: ["number"], of: State.self) {
      $0? += 1
    } while: {
      stores[0].currentValue = 5
    }
    #expect(stores.map(\.confirmedValue) == [6, 2])
  }

  @Test("Edits of pages are displayed on top of a next page and of a refetch")
  func pages() async throws {
    let server = PageServer()
    let request = Paginated<Int, String>(
      path: ["pages"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 }
    ) { paging, _ in
      "\(paging.pageId).\(server.version)"
    }
    let store = client.store(for: request.neverStale())
    try await store.fetchNextPage()
    try await store.optimistically {
      $0[id: 0]?.value += "!"
    } while: {
      try await store.fetchNextPage()
      #expect(store.currentValue.map(\.value) == ["0.0!", "1.0"])
      server.version = 1
      try await store.fetchAllPages()
      #expect(store.currentValue.map(\.value) == ["0.1!", "1.1"])
      #expect(store.confirmedValue.map(\.value) == ["0.1", "1.1"])
    }
    #expect(store.confirmedValue.map(\.value) == ["0.1!", "1.1"])
    try await store.fetchAllPages()
    #expect(store.currentValue.map(\.value) == ["0.1", "1.1"])
    await store.optimistically {
      $0.append(PaginatedPage(id: 2, value: "new"))
    } while: {
      #expect(store.nextPageId == 3, "the next page follows the page that the edit has added")
    }
  }

  @Test("The base value of an edit is released without the lock when its yield is undone")
  func yieldTakenBack() async {
    let (released, remote, other) = (Counter(), Remote<OnDeinit>(), OnDeinit {})
    let store = OperationStore.detached(query: remote.query())
    await withWatchdog({ "a deinit waits for the lock of the store" }) {
      let run = Task { _ = try? await store.run() }
      await remote.wait(forCalls: 1)
      await store.optimistically {
        $0 = other
      } while: {
        remote.yield(
          OnDeinit { [weak store] in
            _ = store?.state
            released.increment()
          })
      }
      store.cancel()
      await run.value
    }
    #expect(await eventually { released.value == 1 })
    #expect(store.currentValue === other)
  }

  @Test("Work that ends after a reset confirms no later edit")
  func endsAfterReset() {
    let store = store()
    store.currentValue = 1
    let early = store.beginEdit { $0? += 10 }
    store.resetState()
    store.currentValue = 2
    let late = store.beginEdit { $0? += 100 }
    store.endEdit(early, isSuccess: true)
    #expect(store.isOptimistic)
    #expect(store.currentValue == 102)
    #expect(store.confirmedValue == 2)
    store.endEdit(late, isSuccess: false)
    #expect(store.currentValue == 2)
  }

  @Test("A value that an edit has replaced is released without the lock when its work succeeds")
  func replaced() async {
    let released = Counter()
    let store = OperationStore.detached(query: Remote<OnDeinit>().query())
    let request = Paginated<Int, OnDeinit>(
      path: ["pages"], initialPageId: 0, nextPageId: { _, _ in nil }
    ) { _, _ in
      OnDeinit {}
    }
    let pages = client.store(for: request.neverStale())
    await withWatchdog({ "a deinit waits for the lock of the store" }) {
      store.currentValue = OnDeinit { [weak store] in
        _ = store?.state
        released.increment()
      }
      await store.optimistically {
        $0 = OnDeinit {}
      } while: {
      }
      #expect(released.value == 1)
      pages.currentValue = [
        PaginatedPage(
          id: 0,
          value: OnDeinit { [weak pages] in
            _ = pages?.state
            released.increment()
          })
      ]
      await pages.optimistically {
        $0 = []
      } while: {
      }
    }
    #expect(released.value == 2)
  }

  @Test("An edit is released when its work has ended and no older run is in flight")
  func nothingLeft() async throws {
    let remote = Remote<Int>()
    let store = client.store(for: remote.query().neverStale())
    let count = Counter()
    let run = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    do {
      let token = OnDeinit { count.increment() }
      await store.optimistically { value in
        value = 1
        withExtendedLifetime(token) {}
      } while: {
      }
    }
    #expect(count.value == 0, "the run that is in flight may still need it")
    remote.answer(5)
    _ = try await run.value
    #expect(store.currentValue == 1)
    #expect(count.value == 1)
  }
}
