import Operation
import Synchronization
import Testing

/// Every pair and triple of page runs that are requested while none has ended, and every order in
/// which their requests are answered.
@Suite struct PageInterleavingTests {
  enum Call: String, CaseIterable, Sendable {
    case next
    case previous
    case all
    case plain
  }

  struct Case: Sendable, CustomTestStringConvertible {
    let calls: [Call]
    let isEmpty: Bool
    let isDeduplicated: Bool

    var testDescription: String {
      "\(calls.map(\.rawValue)) \(isEmpty ? "empty" : "filled") \(isDeduplicated ? "one" : "each")"
    }
  }

  static let cases: [Case] = {
    let pairs = Call.allCases.flatMap { first in Call.allCases.map { [first, $0] } }
    let triples = pairs.flatMap { pair in Call.allCases.map { pair + [$0] } }
    return (pairs + triples).flatMap { calls in
      [true, false].flatMap { isEmpty in
        [true, false].map { Case(calls: calls, isEmpty: isEmpty, isDeduplicated: $0) }
      }
    }
  }()

  @Test(
    "Pages are complete and in order, for all runs in flight and all orders in which they end",
    arguments: cases)
  func interleaving(_ test: Case) async throws {
    var choices = Choices()
    repeat {
      choices.begin()
      if test.isEmpty {
        try await joinInitialPage(test)
      } else {
        try await runConcurrently(test, &choices)
      }
    } while choices.advance()
  }

  /// While the initial page is in flight and there is no page, every call joins its run.
  private func joinInitialPage(_ test: Case) async throws {
    let server = PageServer()
    let store = try await numbers(server, isDeduplicated: test.isDeduplicated)
    server.close()
    let tasks = await start(test.calls, store)
    #expect(store.isLoadingInitialPage && store.activeTasks.count == 1)
    await server.pending(1)
    server.open()
    for task in tasks { #expect(try await task.value == [0]) }
    #expect(server.requests == [0])
    expectWhole(store.state, 0...0)
  }

  private func runConcurrently(_ test: Case, _ choices: inout Choices) async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...1, isDeduplicated: test.isDeduplicated)
    var model = Model(isDeduplicated: test.isDeduplicated)
    let expected = test.calls.map { model.call($0) }
    server.close()
    let tasks = await start(test.calls, store)
    #expect(store.activeTasks.count == model.runs.count)
    while true {
      let running = model.runnable
      if running.isEmpty { break }
      await server.pending(running.count)
      let index = running.count == 1 ? 0 : choices.next()
      let ended = model.runs[running[index]].call.kind
      let pending = try #require(server.pending.first { $0.kind == ended })
      server.answer(pending)
      if model.answer(running[index]) {
        await Settled.when { store.activeTasks.count == model.active.count }
      } else {
        await Settled.when { !server.pending.contains(pending) && server.pending.count == 1 }
      }
    }
    for (task, pages) in zip(tasks, expected) { #expect(try await task.value == Array(pages)) }
    expectWhole(store.state, model.there)
    #expect(store.leaseCount == 0 && !store.isLoading)
  }

  /// Makes the calls in order, each after the store has a lease for the one before it.
  private func start(_ calls: [Call], _ store: NumberStore) async -> [Task<[Int], any Error>] {
    var tasks: [Task<[Int], any Error>] = []
    for call in calls {
      tasks.append(Task { try await call.perform(on: store) })
      await Settled.when { store.leaseCount == tasks.count }
    }
    return tasks
  }

  private func expectWhole(_ state: NumberState, _ pages: ClosedRange<Int>) {
    #expect(state.currentValue.ids == Array(pages))
    #expect(state.nextPageId == pages.upperBound + 1)
    #expect(state.previousPageId == pages.lowerBound - 1)
  }

  @Test("Pages are complete and in order when many tasks fetch pages of all kinds")
  func storm() async throws {
    for isDeduplicated in [true, false] {
      for round in 0..<150 {
        let server = PageServer()
        let store = try await numbers(
          server, there: round % 3 == 0 ? nil : 0...1, isDeduplicated: isDeduplicated)
        await withTaskGroup(of: Void.self) { group in
          for index in 0..<8 {
            let call = Call.allCases[(round + index * (index + round % 5)) % 4]
            group.addTask { _ = try? await call.perform(on: store) }
          }
        }
        let ids = store.currentValue.ids
        let first = try #require(ids.first)
        let last = try #require(ids.last)
        #expect(ids == Array(first...last))
        #expect(store.nextPageId == last + 1 && store.previousPageId == first - 1)
      }
    }
  }
}

extension PageInterleavingTests.Call {
  var kind: PaginatedRunKind {
    switch self {
    case .next: .nextPage
    case .previous: .previousPage
    case .all: .allPages
    case .plain: .refetch
    }
  }

  func perform(on store: NumberStore) async throws -> [Int] {
    switch self {
    case .next: try await store.fetchNextPage().map { [$0.id] } ?? []
    case .previous: try await store.fetchPreviousPage().map { [$0.id] } ?? []
    case .all: try await store.fetchAllPages().ids
    case .plain: try await store.fetch().pages.ids
    }
  }
}

/// The expected order of page runs, for a store with the pages 0 and 1.
private struct Model {
  struct Run {
    let call: PageInterleavingTests.Call
    let pages: ClosedRange<Int>
    var answered = 0
    var isDone: Bool { answered == pages.count }
  }

  let isDeduplicated: Bool
  var runs: [Run] = []
  var there = 0...1

  /// Joins a run or adds one, and returns the pages of the call.
  mutating func call(_ call: PageInterleavingTests.Call) -> ClosedRange<Int> {
    if isDeduplicated, let run = runs.first(where: { $0.call == call }) { return run.pages }
    let pages: ClosedRange<Int>
    switch call {
    case .next:
      pages = there.upperBound + 1...there.upperBound + 1
      there = there.lowerBound...pages.upperBound
    case .previous:
      pages = there.lowerBound - 1...there.lowerBound - 1
      there = pages.lowerBound...there.upperBound
    case .all, .plain: pages = there
    }
    runs.append(Run(call: call, pages: pages))
    return pages
  }

  var active: [Int] { runs.indices.filter { !runs[$0].isDone } }

  /// The runs that wait for no run before them.
  var runnable: [Int] {
    active.filter { index in
      active.allSatisfy {
        $0 >= index || Set([runs[$0].call, runs[index].call]) == [.next, .previous]
      }
    }
  }

  /// Counts an answered request of a run, and returns whether it was the last one.
  mutating func answer(_ index: Int) -> Bool {
    runs[index].answered += 1
    return runs[index].isDone
  }
}

/// Iterates over every sequence of choices between two.
private struct Choices {
  private var taken: [Int] = []
  private var position = 0

  mutating func begin() { position = 0 }

  mutating func next() -> Int {
    if position == taken.count { taken.append(0) }
    defer { position += 1 }
    return taken[position]
  }

  /// Advances to the next sequence, and returns whether there is one.
  mutating func advance() -> Bool {
    while let last = taken.popLast() {
      if last == 0 {
        taken.append(1)
        return true
      }
    }
    return false
  }
}
