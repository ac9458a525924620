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
  private func pendingEdit(of store: NumberStore) async -> (work: Task<Void, Never>, end: Latch) {
    let end = Latch()
    let work = Task { await store.edit("~") { await end.wait() } }
    await store.settles { $0.isOptimistic }
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
