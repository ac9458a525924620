import Testing

@testable import Operation

@Suite("Pages and optimistic edits", .timeLimit(.minutes(1))) struct PageEditTests {
  @Test("A next page is not lost whose neighbour an edit has made that the server has not given")
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
}
