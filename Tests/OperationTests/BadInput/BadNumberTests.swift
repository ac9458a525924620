import Operation
import Testing

/// The result of every public entry with a number for invalid numbers.
@Suite("Bad input: numbers", .timeLimit(.minutes(5))) struct BadNumberTests {
  private typealias Pages = PaginatedState<Int, Int, any Error>

  /// The rows of an entry: a negative number, the least, zero, and the greatest.
  ///
  /// `report` is a part of the report of a negative number, if there is one.
  private static func rows(
    _ entry: String, negative: String, zero: String, greatest: String, report: String?,
    reportsZero: Bool = false, call: @escaping @Sendable (Int) async throws -> String
  ) -> [BadInput] {
    [(-1, negative), (Int.min, negative), (0, zero), (Int.max, greatest)].map { value, outcome in
      let isReported = value < 0 || (reportsZero && value == 0)
      let reports = isReported ? report.map { ["\($0)\(value)"] } ?? [] : []
      return BadInput(entry, "\(value)", outcome, reports: reports) { try await call(value) }
    }
  }

  /// Returns the number of attempts of a request that fails fifty times.
  private static func attempts(
    _ run: (Script) async throws -> Void
  ) async -> String {
    let script = Script(failures: 50)
    try? await run(script)
    return "\(script.attempts) attempts"
  }

  private static let limits: [BadInput] =
    rows(
      "retry(limit:when:)", negative: "1 attempts", zero: "1 attempts", greatest: "51 attempts",
      report: "retry limit of OpenQuery cannot be "
    ) { limit in
      await attempts { script in
        _ = try await OpenQuery(script: script).retry(limit: limit).backoff(.noBackoff).run()
      }
    }
    + rows(
      "OperationDefaults.retryLimit", negative: "1 attempts", zero: "1 attempts",
      greatest: "51 attempts", report: "default retry limit cannot be "
    ) { limit in
      let defaults = OperationDefaults(retryLimit: limit, backoff: .noBackoff)
      let client = OperationClient(defaults: defaults)
      return await attempts { script in _ = try await client.fetch(OpenQuery(script: script)) }
    }
    + rows(
      "OperationDefaults.mutationRetryLimit", negative: "1 attempts", zero: "1 attempts",
      greatest: "51 attempts", report: "default mutation retry limit cannot be "
    ) { limit in
      let defaults = OperationDefaults(backoff: .noBackoff, mutationRetryLimit: limit)
      let client = OperationClient(defaults: defaults)
      return await attempts { script in
        let mutation = Mutation<Int, Int>(path: ["change"]) { _, context in
          try await script.run(in: context) { _ in }.get()
        }
        _ = try await client.store(for: mutation).mutate(with: 1)
      }
    }
    + rows(
      "maxPages(_:)", negative: "[2]", zero: "[2]", greatest: "[0, 1, 2]",
      report: "number of pages of Paginated<Int, Int> cannot be ", reportsZero: true
    ) { limit in
      let pages = Paginated<Int, Int>(
        path: ["pages"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 }
      ) { paging, _ in paging.pageId }
      let store = OperationClient(defaults: .testing).store(for: pages.maxPages(limit))
      for _ in 0..<3 { try await store.fetchNextPage() }
      return "\(store.currentValue.ids)"
    }
    + rows(
      "maxHistory(length:)", negative: "[], then 3", zero: "[], then 3",
      greatest: "[1, 2, 3], then 3", report: "history length of Mutation<Int, Int> cannot be "
    ) { length in
      let mutation = Mutation<Int, Int>(path: ["change"]) { number, _ in number }
      let store = OperationClient(defaults: .testing)
        .store(for: mutation.maxHistory(length: length))
      for number in 1...3 { try await store.mutate(with: number) }
      return "\(store.history.map(\.arguments)), then \(try await store.retryLatest())"
    }
    + rows(
      "limited(to:)", negative: "1 unused", zero: "1 unused", greatest: "3 unused",
      report: "number of unused stores cannot be "
    ) { count in
      let retention = OperationRetention.unusedFor(.seconds(9)).limited(to: count)
      let client = OperationClient(
        defaults: .testing, clock: ManualClock(), retention: retention)
      for id in 0..<3 { _ = client.store(for: OpenQuery(script: Script(), path: [id])) }
      return "\(client.stores(matching: []).count) unused"
    }

  private static let buffers =
    buffers("oldest") { .oldest($0) } + buffers("newest") { .newest($0) }

  private static func buffers(
    _ name: String, _ buffering: @escaping @Sendable (Int) -> StreamBuffering
  ) -> [BadInput] {
    rows(
      "Broadcast.values(buffering:), \(name)", negative: "1 kept", zero: "1 kept",
      greatest: "3 kept", report: "A stream cannot buffer ", reportsZero: true
    ) { limit in
      let broadcast = Broadcast<Int>()
      var iterator = broadcast.values(buffering: buffering(limit)).makeAsyncIterator()
      for number in 0..<3 { broadcast.send(number) }
      broadcast.finish()
      var count = 0
      while await iterator.next() != nil { count += 1 }
      return "\(count) kept"
    }
      + rows(
        "OperationStore.states(buffering:), \(name)", negative: "\(name) 1",
        zero: "\(name) 1", greatest: "\(name) \(Int.max)", report: "A stream cannot buffer ",
        reportsZero: true
      ) { limit in
        let store = OperationClient().store(for: OpenQuery(script: Script()))
        return text(store.states(buffering: buffering(limit)).buffering)
      }
      + rows(
        "OperationClient.events(buffering:), \(name)", negative: "\(name) 1",
        zero: "\(name) 1", greatest: "\(name) \(Int.max)", report: "A stream cannot buffer ",
        reportsZero: true
      ) { limit in
        text(OperationClient().events(buffering: buffering(limit)).buffering)
      }
  }

  private static func text(_ buffering: StreamBuffering) -> String {
    switch buffering {
    case .all: "all"
    case .oldest(let limit): "oldest \(limit)"
    case .newest(let limit): "newest \(limit)"
    }
  }

  private struct Item: Identifiable, Sendable {
    let id: Int
  }

  private static var items: IdentifiedArrayOf<Item> { [Item(id: 1), Item(id: 2)] }

  private static let others: [BadInput] =
    rows(
      "OperationBackoffFunction.callAsFunction(_:)", negative: "1.0 seconds",
      zero: "1.0 seconds", greatest: "3153600000.0 seconds", report: nil
    ) { retry in "\(OperationBackoffFunction.exponential(.seconds(1))(retry))" }
    + rows(
      "sleepers(atLeast:)", negative: "at once", zero: "at once", greatest: "until cancelled",
      report: nil
    ) { count in
      let clock = ManualClock()
      let isDone = Latch()
      let wait = Task {
        await clock.sleepers(atLeast: count)
        isDone.open()
      }
      for _ in 0..<100 where !isDone.isOpen { await Task.yield() }
      if count > 0 { #expect(!isDone.isOpen) } else { await isDone.wait() }
      wait.cancel()
      await wait.value
      return count > 0 ? "until cancelled" : "at once"
    }
    + rows(
      "IdentifiedArray.insert(_:at:)", negative: "[3, 1, 2]", zero: "[3, 1, 2]",
      greatest: "[1, 2, 3]", report: nil
    ) { index in
      var items = items
      items.insert(Item(id: 3), at: index)
      return "\(items.ids)"
    }
    + rows(
      "IdentifiedArray.removeFirst(_:)", negative: "[1, 2]", zero: "[1, 2]", greatest: "[]",
      report: nil
    ) { count in
      var items = items
      items.removeFirst(count)
      return "\(items.ids)"
    }
    + rows(
      "IdentifiedArray.removeLast(_:)", negative: "[1, 2]", zero: "[1, 2]", greatest: "[]",
      report: nil
    ) { count in
      var items = items
      items.removeLast(count)
      return "\(items.ids)"
    }
    + rows(
      "OperationActivity.Counts.init(running:paused:failed:)", negative: "as it is",
      zero: "as it is", greatest: "as it is", report: nil
    ) { number in
      let counts = OperationActivity.Counts(running: number, paused: number, failed: number)
      return [counts.running, counts.paused, counts.failed].allSatisfy { $0 == number }
        ? "as it is" : "changed"
    }
    + rows(
      "EditableState.show(_:updates:)", negative: "shown", zero: "shown", greatest: "shown",
      report: nil
    ) { updates in
      var query = QueryState<Int, any Error>()
      var pages = Pages()
      for _ in 0..<3 {
        query.show(1, updates: updates)
        pages.show([PaginatedPage(id: 1, value: 1)], updates: updates)
      }
      return query.currentValue == 1 && pages.currentValue.ids == [1] ? "shown" : "not shown"
    }

  static let table = limits + buffers + others

  @Test("An invalid number is reported, and the nearest valid one is used", arguments: table)
  func number(row: BadInput) async throws {
    try await row.check()
  }
}
