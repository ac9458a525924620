import Operation
import Testing

/// Page runs that are scheduled first and started later, or never.
@Suite struct PageTaskTests {
  @Test("A task that is released before it is started changes nothing")
  func dropped() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...1)
    let updates = store.valueUpdateCount
    func schedule() {
      let tasks = (
        store.fetchNextPageTask(), store.fetchPreviousPageTask(), store.fetchAllPagesTask()
      )
      #expect(store.activeTasks.count == 3 && store.isLoadingAllPages)
      withExtendedLifetime(tasks) {}
    }
    schedule()
    #expect(!store.isLoading && store.valueUpdateCount == updates && store.error == nil)
    #expect(server.requests == [0, 1])
    #expect(try await store.fetchNextPage()?.id == 2)
  }

  @Test("A task that is started returns what the call would have returned")
  func started() async throws {
    let store = try await numbers(PageServer(), there: 0...0)
    let next = store.fetchNextPageTask()
    let previous = store.fetchPreviousPageTask()
    let all = store.fetchAllPagesTask()
    #expect(!next.hasStarted && store.isLoadingNextPage)
    #expect(try await all.runIfNeeded().ids == [-1, 0, 1])
    #expect(next.isFinished && previous.isFinished)
    #expect(try next.finishedResult?.get()?.id == 1)
    #expect(try await previous.runIfNeeded()?.id == -1)
  }

  @Test("A task for all pages that is not started does not block a next page")
  func unstartedAllPages() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...1)
    let all = store.fetchAllPagesTask()
    #expect(try await store.fetchNextPage()?.id == 2)
    #expect(all.isFinished && server.requests == [0, 1, 0, 1, 2])
  }

  @Test("A task for all pages that is released while a next page may wait for it blocks no run")
  func droppedBeforeANextPage() async throws {
    for _ in 0..<200 {
      let store = try await numbers(PageServer(), there: 0...1)
      var all: OperationTask? = store.fetchAllPagesTask()
      let next = store.fetchNextPageTask()
      let call = Task { try await next.runIfNeeded()?.id }
      #expect(all?.isCancelled == false)
      all = nil
      #expect(try await call.value == 2)
      #expect(!store.isLoading)
    }
  }

  @Test("A call for any page joins and starts a task for the initial page")
  func initialTask() async throws {
    let server = PageServer()
    let store = try await numbers(server)
    let task = store.fetchAllPagesTask()
    #expect(store.isLoadingInitialPage)
    #expect(try await store.fetchPreviousPage()?.id == 0)
    #expect(try await task.runIfNeeded().ids == [0])
    #expect(server.requests == [0])
  }

  @Test("After a cancellation of the next page, the run that waits for it continues")
  func cancelled() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...1)
    server.close()
    let next = Task { try await store.fetchNextPage() }
    await server.pending(1)
    let all = Task { try await store.fetchAllPages().ids }
    await Settled.when { store.leaseCount == 2 }
    next.cancel()
    await #expect(throws: CancellationError.self) { try await next.value }
    await Settled.when { server.pending.contains { $0.kind == .allPages } }
    server.open()
    #expect(try await all.value == [0, 1])
    #expect(store.currentValue.ids == [0, 1])
  }
}
