import FoundationEssentials
import TestSupport
import Testing

@testable import Operation

/// The pages of a state have unique identifiers, and no gap except those that a write made. After a
/// run for one more page there are at most as many pages as the limit allows. The counts, the dates
/// and the error are those of the received results. A run waits for all earlier runs, except that runs
/// for the next and for the previous page do not wait for each other. While there is no page, all runs
/// are one run for the initial page. The state returns dropped pages to the store.
@Suite("PaginatedState, every sequence") struct PaginatedStateExhaustiveTests {
  enum Step: CaseIterable {
    case next, previous, all, firstPage
    /// The oldest or the newest run in flight ends, yields, or fails.
    case landOldest, landNewest, landPresentPage, landNothing, yieldOldest, failOldest
    case cancelNewest
    case pauseOldest, write, writeNothing, writeFailure, showFewer, reset
  }

  struct Walk {
    typealias State = PaginatedState<Int, Int, Arrivals<Void>.Failed>
    typealias Failed = Arrivals<Void>.Failed
    typealias Task = OperationTask<State.OperationValue, Failed>
    typealias Page = PaginatedPage<Int, Int>

    struct Run {
      let task: Task
      var kind: PaginatedRunKind
      var isPaused = false
      /// The pages at the beginning of the run; nil before it.
      var known: [Int]?
    }

    let limit: Int
    let initial: [Int]
    let clock = StepClock()
    var context = OperationContext()
    let cancellations = Tape<OperationTaskID>()
    var state: State
    var arrivals = Arrivals<Void>()
    var list: [Page]
    /// The first and the last page, if their edges lead to a page that does not exist.
    var ends: (before: Int?, behind: Int?) = (nil, nil)
    var runs: [Run] = []
    var gone: [Task] = []
    var extraUpdates = 0
    /// The pages before and behind which a write put a page that is not their neighbour.
    var cuts: (before: Set<Int>, behind: Set<Int>) = ([], [])
    var moment = 0

    init(_ initial: [Int], limit: Int) {
      (self.initial, self.limit) = (initial, limit)
      list = initial.map { Page(id: $0, value: -$0) }
      state = State(initialValue: PaginatedPages(list))
      context = .timed(by: clock)
      context.settings.values.pages.limit = limit
      context.settings.values.pages.refetch = PaginatedRefetch<Int, Int>.firstPage
      context.settings.values.pages.edges = PageEdgeFinder<Int, Int> { page, _, _ in
        Self.edges(of: page.id)
      }
      state.prepareInitialValue(in: context)
    }

    /// The server has the pages from 0 to 4, and edges for the pages that a write put far from them.
    static func edges(of id: Int) -> PageEdges<Int> {
      PageEdges(before: id > 0 ? id - 1 : nil, after: id != 4 ? id + 1 : nil)
    }

    mutating func take(_ step: Step) throws -> Bool {
      moment += 1
      clock.set(moment)
      let before = Array(state.currentValue)
      guard try perform(step) else { return false }
      try begin()
      let released = state.takeReleased().flatMap(Self.values)
      if step != .reset, step != .showFewer {
        let present = Array(state.currentValue)
        for page in before {
          try mustHold(
            present.contains { $0.value == page.value } || released.contains(page.value),
            "the value \(page.value) is dropped without a release")
        }
      }
      try mustHold(state.takeReleased().isEmpty, "a released page is returned once")
      try check()
      return true
    }

    private mutating func perform(_ step: Step) throws -> Bool {
      let begun = runs.indices.filter { runs[$0].known != nil }
      switch step {
      case .next: try schedule(.nextPage)
      case .previous: try schedule(.previousPage)
      case .all: try schedule(.allPages)
      case .firstPage: try schedule(.refetch)
      case .landOldest: return try lands(begun.first)
      case .landNewest: return try begun.count > 1 && lands(begun.last)
      case .landPresentPage: return try landsPresentPage(begun.first)
      case .landNothing: return try landsNothing(begun.first)
      case .yieldOldest: return try yields(begun.first)
      case .failOldest: return fails(begun.first)
      case .cancelNewest: return cancels(runs.indices.last)
      case .pauseOldest: return pauses(begun.first)
      case .write: write([min(list.last?.id ?? 2, 4), 10, 11, 12])
      case .writeNothing: write([])
      case .writeFailure:
        state.update(with: .failure(Failed(moment: moment)), using: context)
        arrivals.note(.failure(Failed(moment: moment)), at: moment)
      case .showFewer: return shows()
      case .reset: try reset()
      }
      return true
    }
  }
}

// Runs.
extension PaginatedStateExhaustiveTests.Walk {
  mutating func schedule(_ requested: PaginatedRunKind) throws {
    var context = context
    context.pageRunKind = requested
    let joined = state.taskToJoin(in: &context)
    let kind = list.isEmpty ? .initialPage : requested
    let shared = list.isEmpty ? runs.last { $0.kind == .initialPage } : nil
    try mustHold(
      joined == shared?.task.id, "a run for the initial page joins one that is in flight")
    try mustHold(context.pageRunKind == kind, "the run is for the \(kind)")
    guard joined == nil else { return }
    var task = Task.idle(noting: cancellations, in: context)
    state.scheduleFetchTask(&task)
    let others = runs.filter { !Self.areBeside(kind, $0.kind) }.map(\.task.id)
    try mustHold(task.node.dependencies.map(\.node.id) == others, "it waits for \(others)")
    runs.append(Run(task: task, kind: kind))
  }

  static func areBeside(_ kind: PaginatedRunKind, _ other: PaginatedRunKind) -> Bool {
    switch (kind, other) {
    case (.nextPage, .previousPage), (.previousPage, .nextPage): true
    default: false
    }
  }

  /// Begins the runs that wait for no other run.
  mutating func begin() throws {
    for index in runs.indices where runs[index].known == nil {
      let isCurrent = runs[..<index].allSatisfy { Self.areBeside(runs[index].kind, $0.kind) }
      guard isCurrent else { continue }
      var context = runs[index].task.context
      state.willRun(in: &context)
      let start = context.work as? PageStart<Int, Int>
      try mustHold(start.map { Array($0.pages) } == list, "a run begins with the current pages")
      if list.isEmpty, runs[index].kind != .initialPage {
        runs[index].kind = .initialPage
        var task = runs[index].task
        task.setContext(context)
        state.startFetchTask(task)
      }
      try mustHold(start?.kind == runs[index].kind, "a run begins with its kind")
      runs[index].known = list.map(\.id)
    }
  }

  /// Returns the identifiers that a run fetches, and their place in the list.
  func found(by run: Run) -> (ids: [Int], place: PagePlace<Int>) {
    guard let known = run.known, let first = known.first, let last = known.last else {
      return ([0], .initial)
    }
    let edges = (before: Self.edges(of: first).before, after: Self.edges(of: last).after)
    switch run.kind {
    case .initialPage: return ([0], .initial)
    case .nextPage: return (edges.after.map { [$0] } ?? [], .after(last))
    case .previousPage: return (edges.before.map { [$0] } ?? [], .before(first))
    case .allPages: return (known, .whole)
    case .refetch: return ([first], .present)
    }
  }

  func page(_ id: Int, at place: Int) -> Page {
    var page = Page(id: id, value: moment * 10 + place)
    page.edges = Self.edges(of: id)
    return page
  }

  mutating func lands(_ index: Int?) throws -> Bool {
    guard let index else { return false }
    let (ids, place) = found(by: runs[index])
    try give(ids, place, runs[index])
    finish(index)
    return true
  }

  /// The server returns a page that is already present, or all pages end early.
  mutating func landsPresentPage(_ index: Int?) throws -> Bool {
    guard let index, let first = list.first, let last = list.last else { return false }
    let (ids, place) = found(by: runs[index])
    switch place {
    case .after: try give([first.id], place, runs[index])
    case .before: try give([last.id], place, runs[index])
    case .whole: try give(Array(ids.prefix(1)), place, runs[index])
    case .present, .initial: return false
    }
    finish(index)
    return true
  }

  /// The server has no further page, although one was announced.
  mutating func landsNothing(_ index: Int?) throws -> Bool {
    guard let index else { return false }
    let place = found(by: runs[index]).place
    switch place {
    case .after(let id): if id == list.last?.id { ends.behind = id }
    case .before(let id): if id == list.first?.id { ends.before = id }
    case .whole, .initial, .present: return false
    }
    try give([], place, runs[index])
    finish(index)
    return true
  }

  mutating func yields(_ index: Int?) throws -> Bool {
    guard let index else { return false }
    let (ids, place) = found(by: runs[index])
    if ids.isEmpty { return false }
    try give(Array(ids.prefix(2)), place == .whole ? .present : place, runs[index])
    return true
  }

  mutating func give(_ ids: [Int], _ place: PagePlace<Int>, _ run: Run) throws {
    let pages = ids.enumerated().map { page($0.element, at: $0.offset) }
    let task = run.task
    let result = PaginatedResult(kind: run.kind, pages: PaginatedPages(pages), place: place)
    state.update(with: .success(result), for: task)
    let present = Set(list.map(\.id))
    let isInserted = !present.isSuperset(of: ids)
    switch place {
    case .after(let id) where isInserted && present.contains(id):
      if ends.behind == id { ends.behind = nil }
    case .before(let id) where isInserted && present.contains(id):
      if ends.before == id { ends.before = nil }
    case .after, .before, .whole, .initial, .present: break
    }
    list = Self.merged(list, pages, place, limit)
    // If no page is stored, the pages are as old as before.
    let isStored = !result.isPart || ids.contains { id in list.contains { $0.id == id } }
    arrivals.note(.success(()), at: isStored ? moment : arrivals.values.last ?? moment)
    let isOpen = { (id: Int) in place == .whole || ids.contains(id) }
    if ends.before.map(isOpen) == true { ends.before = nil }
    if ends.behind.map(isOpen) == true { ends.behind = nil }
    switch place {
    case .after, .before:
      try mustHold(state.currentValue.count <= limit, "there are \(limit) pages at most")
    case .whole, .initial, .present: break
    }
  }

  /// Merges the pages of a run into a plain list, as the state does.
  static func merged(
    _ list: [Page], _ pages: [Page], _ place: PagePlace<Int>, _ limit: Int
  ) -> [Page] {
    let renewed = list.map { old in pages.first { $0.id == old.id } ?? old }
    let new = pages.filter { page in !list.contains { $0.id == page.id } }
    switch place {
    case .whole: return pages
    case .initial: return new.count == pages.count ? pages : renewed
    case .present: return renewed
    case .after(let id):
      let parts = renewed.split(maxSplits: 1, omittingEmptySubsequences: false) { $0.id == id }
      if parts.count < 2 { return Array(renewed.suffix(limit)) }
      let neighbour = renewed.filter { $0.id == id }
      return Array((parts[0] + neighbour + new + parts[1]).suffix(limit))
    case .before(let id):
      let parts = renewed.split(maxSplits: 1, omittingEmptySubsequences: false) { $0.id == id }
      if parts.count < 2 { return Array(renewed.prefix(limit)) }
      let neighbour = renewed.filter { $0.id == id }
      return Array((parts[0] + new + neighbour + parts[1]).prefix(limit))
    }
  }

  mutating func fails(_ index: Int?) -> Bool {
    guard let index else { return false }
    let task = runs[index].task
    state.update(with: .failure(Failed(moment: moment)), for: task)
    arrivals.note(.failure(Failed(moment: moment)), at: moment)
    finish(index)
    return true
  }

  mutating func finish(_ index: Int) {
    state.finishFetchTask(runs[index].task)
    gone.append(runs.remove(at: index).task)
  }

  mutating func cancels(_ index: Int?) -> Bool {
    guard let index else { return false }
    state.giveUpFetchTask(runs[index].task)
    gone.append(runs.remove(at: index).task)
    return true
  }

  mutating func pauses(_ index: Int?) -> Bool {
    guard let index else { return false }
    runs[index].isPaused.toggle()
    state.setPaused(runs[index].isPaused, runs[index].task.id)
    for task in gone { state.setPaused(true, task.id) }
    return true
  }
}

extension PaginatedStateExhaustiveTests {
  @Test("Pages are unique and without gaps, the limit holds, and all results are counted")
  func everySequence() {
    exhaust(
      "PaginatedState", events: Step.allCases, length: 4, from: Walk([1, 2, 3], limit: 3)
    ) { walk, step in try walk.take(step) }
  }

  @Test("The same holds for a state that begins without pages")
  func everySequenceFromNothing() {
    exhaust(
      "PaginatedState, empty at first", events: Step.allCases, length: 4, from: Walk([], limit: 2)
    ) { walk, step in try walk.take(step) }
  }

  @Test("The same holds for longer sequences of runs and writes")
  func longer() {
    let steps: [Step] = [.next, .previous, .all, .landOldest, .landNewest, .yieldOldest, .write]
    exhaust(
      "PaginatedState, runs and writes", events: steps, length: 6, from: Walk([1, 2], limit: 3)
    ) { walk, step in try walk.take(step) }
  }
}
