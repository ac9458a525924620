import Operation
import Synchronization
import Testing

/// Every pair and triple of page runs that are asked for while none has ended, and every order in
/// which their requests are answered.
@Suite struct PageInterleavingTests {
  enum Ask: String, CaseIterable, Sendable {
    case next
    case previous
    case all
    case plain
  }

  struct Case: Sendable, CustomTestStringConvertible {
    let asks: [Ask]
    let isEmpty: Bool
    let isDeduplicated: Bool

    var testDescription: String {
      "\(asks.map(\.rawValue)) \(isEmpty ? "empty" : "filled") \(isDeduplicated ? "one" : "each")"
    }
  }

  static let cases: [Case] = {
    let pairs = Ask.allCases.flatMap { first in Ask.allCases.map { [first, $0] } }
    let triples = pairs.flatMap { pair in Ask.allCases.map { pair + [$0] } }
    return (pairs + triples).flatMap { asks in
      [true, false].flatMap { isEmpty in
        [true, false].map { Case(asks: asks, isEmpty: isEmpty, isDeduplicated: $0) }
      }
    }
  }()

  @Test(
    "Pages are complete and in order, whichever runs are under way and in whichever order they end",
    arguments: cases)
  func interleaving(_ test: Case) async throws {
    var choices = Choices()
    repeat {
      choices.begin()
      if test.isEmpty {
        try await joinInitialPage(test)
      } else {
        try await runBeside(test, &choices)
      }
    } while choices.advance()
  }

  /// While the initial page is under way and none is there, everything means the initial page.
  private func joinInitialPage(_ test: Case) async throws {
    let server = PageServer()
    let store = try await numbers(server, isDeduplicated: test.isDeduplicated)
    server.close()
    let calls = await ask(test.asks, store)
    #expect(store.isLoadingInitialPage && store.activeTasks.count == 1)
    await server.pending(1)
    server.open()
    for call in calls { #expect(try await call.value == [0]) }
    #expect(server.requests == [0])
    expectWhole(store.state, 0...0)
  }

  private func runBeside(_ test: Case, _ choices: inout Choices) async throws {
    let server = PageServer()
    let store = try await numbers(server, there: 0...1, isDeduplicated: test.isDeduplicated)
    var model = Model(isDeduplicated: test.isDeduplicated)
    let expected = test.asks.map { model.ask($0) }
    server.close()
    let calls = await ask(test.asks, store)
    #expect(store.activeTasks.count == model.runs.count)
    while true {
      let running = model.runnable
      if running.isEmpty { break }
      await server.pending(running.count)
      let index = running.count == 1 ? 0 : choices.next()
      let ended = model.runs[running[index]].ask.kind
      let pending = try #require(server.pending.first { $0.kind == ended })
      server.answer(pending)
      if model.answer(running[index]) {
        await Settled.when { store.activeTasks.count == model.active.count }
      } else {
        await Settled.when { !server.pending.contains(pending) && server.pending.count == 1 }
      }
    }
    for (call, pages) in zip(calls, expected) { #expect(try await call.value == Array(pages)) }
    expectWhole(store.state, model.there)
    #expect(store.leaseCount == 0 && !store.isLoading)
  }

  /// Calls one after the other, each when the one before it is in the store.
  private func ask(_ asks: [Ask], _ store: NumberStore) async -> [Task<[Int], any Error>] {
    var calls: [Task<[Int], any Error>] = []
    for ask in asks {
      calls.append(Task { try await ask.call(store) })
      await Settled.when { store.leaseCount == calls.count }
    }
    return calls
  }

  private func expectWhole(_ state: NumberState, _ pages: ClosedRange<Int>) {
    #expect(state.currentValue.ids == Array(pages))
    #expect(state.nextPageId == pages.upperBound + 1)
    #expect(state.previousPageId == pages.lowerBound - 1)
  }

  @Test("Pages are complete and in order when everything is asked for from everywhere")
  func storm() async throws {
    for isDeduplicated in [true, false] {
      for round in 0..<150 {
        let server = PageServer()
        let store = try await numbers(
          server, there: round % 3 == 0 ? nil : 0...1, isDeduplicated: isDeduplicated)
        await withTaskGroup(of: Void.self) { group in
          for index in 0..<8 {
            let ask = Ask.allCases[(round + index * (index + round % 5)) % 4]
            group.addTask { _ = try? await ask.call(store) }
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

extension PageInterleavingTests.Ask {
  var kind: PaginatedRunKind {
    switch self {
    case .next: .nextPage
    case .previous: .previousPage
    case .all: .allPages
    case .plain: .refetch
    }
  }

  func call(_ store: NumberStore) async throws -> [Int] {
    switch self {
    case .next: try await store.fetchNextPage().map { [$0.id] } ?? []
    case .previous: try await store.fetchPreviousPage().map { [$0.id] } ?? []
    case .all: try await store.fetchAllPages().ids
    case .plain: try await store.fetch().pages.ids
    }
  }
}

/// What promise 7 says, for a store with the pages 0 and 1.
private struct Model {
  struct Run {
    let ask: PageInterleavingTests.Ask
    let pages: ClosedRange<Int>
    var answered = 0
    var isDone: Bool { answered == pages.count }
  }

  let isDeduplicated: Bool
  var runs: [Run] = []
  var there = 0...1

  /// Joins a run or adds one; gives the pages of the call.
  mutating func ask(_ ask: PageInterleavingTests.Ask) -> ClosedRange<Int> {
    if isDeduplicated, let run = runs.first(where: { $0.ask == ask }) { return run.pages }
    let pages: ClosedRange<Int>
    switch ask {
    case .next:
      pages = there.upperBound + 1...there.upperBound + 1
      there = there.lowerBound...pages.upperBound
    case .previous:
      pages = there.lowerBound - 1...there.lowerBound - 1
      there = pages.lowerBound...there.upperBound
    case .all, .plain: pages = there
    }
    runs.append(Run(ask: ask, pages: pages))
    return pages
  }

  var active: [Int] { runs.indices.filter { !runs[$0].isDone } }

  /// Runs that wait for none before them.
  var runnable: [Int] {
    active.filter { index in
      active.allSatisfy {
        $0 >= index || Set([runs[$0].ask, runs[index].ask]) == [.next, .previous]
      }
    }
  }

  /// A request of a run was answered; tells whether it was the last one.
  mutating func answer(_ index: Int) -> Bool {
    runs[index].answered += 1
    return runs[index].isDone
  }
}

/// Goes through every sequence of choices between two.
private struct Choices {
  private var taken: [Int] = []
  private var position = 0

  mutating func begin() { position = 0 }

  mutating func next() -> Int {
    if position == taken.count { taken.append(0) }
    defer { position += 1 }
    return taken[position]
  }

  /// Goes to the next sequence; tells whether there is one.
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
