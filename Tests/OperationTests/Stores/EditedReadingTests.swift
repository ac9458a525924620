import Testing

@testable import Operation

/// A query that returns twice the value of another one.
private struct Doubled: QueryRequest {
  let base: Query<Int, any Error>
  var reads = EventLog<Int>()
  var path: OperationPath { ["doubled"] }

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int {
    reads.append(context.value(of: base) ?? -1)
    return try await context.ensure(base) * 2
  }
}

@Suite("Reads of other requests while an edit is pending")
struct EditedReadingTests {
  private struct Refusal: Error {}

  @Test(
    "A run reads the confirmed value, a caller the edited one, and a failed edit leaves no trace")
  func confirmed() async throws {
    let client = OperationClient(defaults: .testing)
    let base = Query<Int, any Error>(path: ["base"]) { _ in 1 }
    let doubled = Doubled(base: base)
    try await client.fetch(base)
    await #expect(throws: Refusal.self) {
      try await client.store(for: base).optimistically {
        $0 = 60
      } while: {
        #expect(client.store(for: base).currentValue == 60)
        let (edited, made) = (try await client.ensure(base), try await client.fetch(doubled))
        #expect(edited == 60)
        #expect(made == 2)
        #expect(doubled.reads.values == [1])
        throw Refusal()
      }
    }
    #expect(client.store(for: doubled).currentValue == 2)
    #expect(client.store(for: base).currentValue == 1)
  }

  @Test("What was made of a value without an edit is out of date, also if that ended meanwhile")
  func endingEdit() async throws {
    let client = OperationClient(defaults: .testing)
    let base = Query<Int, any Error>(path: ["base"]) { _ in 1 }.neverStale()
    let doubled = base.map { $0 * 2 }
    try await client.fetch(base)
    let (store, isInside, mayEnd) = (client.store(for: base), Latch(), ThreadLatch())
    let edit = store.beginEdit { $0 = 6 }
    try await withWatchdog({ "a read waits for exclusive access" }) {
      async let owner: Void = onThreads(1) { _ in
        store.withExclusiveAccess {
          store.endEdit(edit, isSuccess: true)
          isInside.open()
          mayEnd.wait()
        }
      }
      await isInside.wait()
      let early = try await client.ensure(doubled)
      #expect(early == 2)
      mayEnd.open()
      await owner
    }
    #expect(client.store(for: doubled).isStale)
    #expect(try await client.ensure(doubled) == 12)
  }

  @Test("An edit whose work ends after a reset makes nothing out of date, also below another edit")
  func lateEdit() async throws {
    let client = OperationClient(defaults: .testing)
    let base = Query<Int, any Error>(path: ["base"]) { _ in 1 }.neverStale()
    let (store, mapped) = (client.store(for: base), client.store(for: base.map { $0 + 1 }))
    let late = store.beginEdit { $0 = 5 }
    store.resetState()
    try await mapped.run()
    let next = store.beginEdit { $0 = 6 }
    store.endEdit(late, isSuccess: true)
    #expect(!mapped.isStale && store.currentValue == 6 && store.confirmedValue == 1)
    store.endEdit(next, isSuccess: true)
    #expect(mapped.isStale && store.confirmedValue == 6)
  }

  @Test("A mapped query reads the confirmed value of the other query")
  func map() async throws {
    let client = OperationClient(defaults: .testing)
    let base = Query<Int, any Error>(path: ["base"]) { _ in 1 }
    let text = base.map { "\($0)" }
    try await client.fetch(base)
    await #expect(throws: Refusal.self) {
      try await client.store(for: base).optimistically {
        $0 = 60
      } while: {
        let made = try await client.ensure(text)
        #expect(made == "1")
        throw Refusal()
      }
    }
    let kept = try await client.ensure(text)
    #expect(kept == "1")
  }
}
