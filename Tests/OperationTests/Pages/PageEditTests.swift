import Testing

@testable import Operation

@Suite("Pages and optimistic edits", .timeLimit(.minutes(5))) struct PageEditTests {
  @Test("A next page is not lost when its neighbour is from an edit, and not from the server")
  func pageBehindSettledEdit() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...1)
    let mayEnd = Latch()
    let long = Task {
      await store.optimistically { _ in
      } while: {
        await mayEnd.wait()
      }
    }
    await store.settles { $0.isOptimistic }
    await store.optimistically {
      $0.append(PaginatedPage(id: 2, value: "2e"))
    } while: {
    }
    #expect(store.confirmedValue.ids == [0, 1, 2])
    server.close()
    let next = Task { try await store.fetchNextPage()?.id }
    await server.pending(1)
    await store.optimistically {
      $0[0].value = "0e"
    } while: {
    }
    server.open()
    #expect(try await next.value == 3)
    #expect(store.currentValue.ids == [0, 1, 2, 3])
    mayEnd.open()
    await long.value
    #expect(store.currentValue.ids == [0, 1, 2, 3])
  }

  @Test("A next page with a confirmed edit does not get it a second time when another is confirmed")
  func pageBetweenConfirmations() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...1)
    let long = await pendingEdit(of: store)
    await store.confirm("a")
    server.close()
    // The server's answer has that edit, and none that is confirmed from now on.
    server.version = 1
    let next = Task { try await store.fetchNextPage()?.id }
    await server.pending(1)
    await store.confirm("b")
    #expect(store.currentValue.map(\.value) == ["0v0a~b", "1v0a~b"])
    server.open()
    #expect(try await next.value == 2)
    #expect(store.currentValue.map(\.value) == ["0v0a~b", "1v0a~b", "2v1~b"])
    #expect(store.confirmedValue.map(\.value) == ["0v0ab", "1v0ab", "2v1b"])
    long.end.open()
    await long.work.value
    #expect(store.currentValue.map(\.value) == ["0v0a~b", "1v0a~b", "2v1~b"])
  }

  @Test("A next page does not get a confirmed edit twice after a previous page without that edit")
  func pagesOnBothSides() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...1)
    let long = await pendingEdit(of: store)
    server.close()
    let previous = Task { try await store.fetchPreviousPage()?.id }
    await server.pending(1)
    await store.confirm("a")
    server.version = 1
    server.answer(-1)
    #expect(try await previous.value == -1)
    // The server's answer does not have the edit.
    #expect(store.confirmedValue.map(\.value) == ["-1v1a", "0v0a", "1v0a"])
    let next = Task { try await store.fetchNextPage()?.id }
    await server.pending(1)
    await store.confirm("b")
    server.open()
    #expect(try await next.value == 2)
    #expect(store.confirmedValue.map(\.value) == ["-1v1ab", "0v0ab", "1v0ab", "2v1b"])
    long.end.open()
    await long.work.value
  }

  @Test("A previous page does not get a confirmed edit twice beside a next page without that edit")
  func olderPageOnTheOtherSide() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...0)
    let first = await pendingEdit(of: store)
    server.close()
    let next = Task { try await store.fetchNextPage()?.id }
    await server.pending(1)
    first.end.open()
    await first.work.value
    server.version = 1
    let previous = Task { try await store.fetchPreviousPage()?.id }
    await server.pending(2)
    await store.confirm("b")
    server.answer(-1)
    #expect(try await previous.value == -1)
    #expect(store.confirmedValue.map(\.value) == ["-1v1b", "0v0~b"])
    server.open()
    #expect(try await next.value == 1)
    // An edit concerns the whole list.
    #expect(store.currentValue.map(\.value) == ["-1v1b", "0v0~b", "1v1b"])
  }

  @Test("A page gets the edit confirmed meanwhile, also after a call that finds no further page")
  func callWithoutPage() async throws {
    let server = PageServer(-100...1)
    let store = try await numbers(server, there: 0...1)
    server.close()
    let previous = Task { try await store.fetchPreviousPage()?.id }
    await server.pending(1)
    await store.confirm("a")
    #expect(try await store.fetchNextPage()?.id == nil)
    #expect(store.currentValue.map(\.value) == ["0v0a", "1v0a"])
    server.answer(-1)
    #expect(try await previous.value == -1)
    #expect(store.currentValue.map(\.value) == ["-1v0a", "0v0a", "1v0a"])
    // The answer of a request from after the success is displayed as it is.
    server.open()
    _ = try await store.fetchPreviousPage()
    #expect(store.currentValue.map(\.value) == ["-2v0", "-1v0a", "0v0a", "1v0a"])
  }

  @Test("A page does not get a confirmed edit twice because a fetch waits for it")
  func waitingFetch() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...0)
    let long = await pendingEdit(of: store)
    let edit = await pendingEdit(of: store, "a")
    server.close()
    let all = Task { try await store.fetchAllPages() }
    await server.pending(1)
    let next = Task { try await store.fetchNextPage()?.id }
    await store.settles { $0.activeTasks.count == 2 }
    let fetch = Task { try await store.fetch() }
    await store.settles { $0.activeTasks.count == 3 }
    edit.end.open()
    await edit.work.value
    server.version = 1
    server.answer(0)
    _ = try await all.value
    await server.pending(1)
    await store.confirm("b")
    server.answer(1)
    #expect(try await next.value == 1)
    #expect(store.currentValue.map(\.value).last == "1v1~b")
    // The edit succeeds while the fetch is in flight.
    await server.pending(1)
    server.open()
    long.end.open()
    await long.work.value
    _ = try await fetch.value
    #expect(store.currentValue.map(\.value) == ["0v1~", "1v1~"])
  }

  @Test("A written page does not get an edit from before when the initial page replaces another")
  func initialPageAfterWrite() async throws {
    let server = PageServer()
    let store = try await numbers(server)
    server.close()
    let fetch = Task { try await store.fetch() }
    await server.pending(1)
    await store.confirm("a")
    store.currentValue = .written(0...1)
    server.open()
    _ = try await fetch.value
    #expect(store.confirmedValue.map(\.value) == ["0v0", "1w"])
  }

  @Test("The initial page takes the place of no other page when an edit has removed it meanwhile")
  func removedInitialPage() async throws {
    let store = try await numbers(PageServer())
    let end = Latch()
    let other = OperationClient(defaults: .quiet()).store(
      for: Query<Int, any Error>(path: ["other"]) { _ in
        await end.wait()
        return 0
      })
    let task = store.runTask()
    task.schedule(after: other.runTask())
    let fetch = Task { try await task.runIfNeeded() }
    await Settled.when { task.hasStarted }
    store.currentValue = .written(0...1)
    await store.optimistically {
      $0.remove(id: 0)
    } while: {
    }
    #expect(store.currentValue.ids == [1])
    end.open()
    _ = try await fetch.value
    #expect(store.currentValue.map(\.value) == ["0v0", "1w"])
  }

  @Test("A fetch of all pages in flight leaves the edits in their order")
  func orderDuringFetch() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...0)
    let long = await pendingEdit(of: store)
    await store.confirm("a")
    server.close()
    let all = Task { try? await store.fetchAllPages() }
    await server.pending(1)
    await store.confirm("b")
    #expect(store.currentValue.map(\.value) == ["0v0~ab"])
    all.cancel()
    _ = await all.value
    #expect(store.currentValue.map(\.value) == ["0v0~ab"])
    server.open()
    long.end.open()
    await long.work.value
  }

  @Test("A page that replaces one without its neighbour gets the edit that was confirmed meanwhile")
  func replacedPage() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...0)
    server.close()
    let next = Task { try await store.fetchNextPage()?.id }
    await server.pending(1)
    store.currentValue = .written(1...3)
    await store.confirm("a")
    server.open()
    _ = try await next.value
    #expect(store.confirmedValue.map(\.value) == ["1v0a", "2wa", "3wa"])
  }

  @Test("A cancelled next page keeps confirmed edits, and a later fetch of all pages replaces them")
  func cancelledBehindPlacement() async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...1)
    let long = await pendingEdit(of: store)
    await store.confirm("a")
    server.close()
    let next = Task { try? await store.fetchNextPage()?.id }
    await server.pending(1)
    await store.confirm("b")
    next.cancel()
    _ = await next.value
    #expect(store.confirmedValue.map(\.value) == ["0v0ab", "1v0ab"])
    server.open()
    server.version = 2
    try await store.fetchAllPages()
    // All of these pages were requested after both edits.
    #expect(store.confirmedValue.map(\.value) == ["0v2", "1v2"])
    #expect(store.currentValue.map(\.value) == ["0v2~", "1v2~"])
    long.end.open()
    await long.work.value
    #expect(store.currentValue.map(\.value) == ["0v2~", "1v2~"])
  }

  /// Starts an edit of all pages whose work is in flight.
  private func pendingEdit(
    of store: NumberStore, _ text: String = "~"
  ) async -> (work: Task<Void, Never>, end: Latch) {
    let (begun, end) = (Latch(), Latch())
    let work = Task {
      await store.edit(text) {
        begun.open()
        await end.wait()
      }
    }
    await begun.wait()
    return (work, end)
  }
}

extension NumberStore {
  /// Appends a text to the values of all pages, as an edit that is pending while `work` runs.
  nonisolated(nonsending) fileprivate func edit(
    _ text: String, while work: nonisolated(nonsending) () async -> Void
  ) async {
    await optimistically { pages in
      for index in pages.indices { pages[index].value += text }
    } while: {
      await work()
    }
  }

  nonisolated(nonsending) fileprivate func confirm(_ text: String) async {
    await edit(text) {}
  }
}
