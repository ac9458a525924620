import FoundationEssentials
import TestSupport
import Testing

@testable import Operation

/// The pages of a state are a list without an identifier twice, and without a hole that nobody
/// wrote; after a page more there are not more than the limit says. Its counts, its dates and its
/// error are those of what came. Runs wait for all others, unless one is for the next page and the
/// other one for the previous page; while there is no page, all are the one for the initial page.
/// Pages that have gone are given to the store.
@Suite("PaginatedState, every sequence") struct PaginatedStateExhaustiveTests {
  fileprivate enum Step: CaseIterable {
    case next, previous, all, firstPage
    /// The oldest or the newest run that is under way ends, yields, or fails.
    case landOldest, landNewest, landWhatIsThere, landNothing, yieldOldest, failOldest
    case giveUpNewest
    case pauseOldest, write, writeNothing, writeFailure, showFewer, reset
  }

  fileprivate struct Walk {
    fileprivate typealias State = PaginatedState<Int, Int, Arrivals<Void>.Failed>
    fileprivate typealias Failed = Arrivals<Void>.Failed
    fileprivate typealias Task = OperationTask<State.OperationValue, Failed>
    fileprivate typealias Page = PaginatedPage<Int, Int>

    fileprivate struct Run {
      let task: Task
      let kind: PaginatedRunKind
      var isPaused = false
      /// The pages that were there when it began; nil before.
      var known: [Int]?
    }

    private let limit: Int
    private let initial: [Int]
    private let clock = StepClock()
    private var context = OperationContext()
    private let cancellations = Tape<OperationTaskID>()
    private var state: State
    private var arrivals = Arrivals<Void>()
    private var list: [Page]
    /// The pages without one before, and without one behind them, although they lead to one.
    private var ends: (before: Int?, behind: Int?) = (nil, nil)
    private var runs: [Run] = []
    private var gone: [Task] = []
    private var extraUpdates = 0
    /// The pages before and behind which somebody wrote one that is not their neighbour.
    private var cuts: (before: Set<Int>, behind: Set<Int>) = ([], [])
    private var moment = 0

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

    /// The server has the pages from 0 to 4, and what somebody wrote far from them.
    private static func edges(of id: Int) -> PageEdges<Int> {
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
            "the value \(page.value) went away within")
        }
      }
      try mustHold(state.takeReleased().isEmpty, "what has gone is given once")
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
      case .landWhatIsThere: return try landsWhatIsThere(begun.first)
      case .landNothing: return try landsNothing(begun.first)
      case .yieldOldest: return try yields(begun.first)
      case .failOldest: return fails(begun.first)
      case .giveUpNewest: return givesUp(runs.indices.last)
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
  private mutating func schedule(_ wish: PaginatedRunKind) throws {
    var context = context
    context.pageRunKind = wish
    let joined = state.taskToJoin(in: &context)
    let kind = list.isEmpty ? .initialPage : wish
    let shared = list.isEmpty ? runs.first { $0.kind == .initialPage } : nil
    try mustHold(joined == shared?.task.id, "what is the initial page's, joins its run")
    try mustHold(context.pageRunKind == kind, "the run is for the \(kind)")
    guard joined == nil else { return }
    var task = Task.idle(noting: cancellations, in: context)
    state.scheduleFetchTask(&task)
    let others = runs.filter { !Self.areBeside(kind, $0.kind) }.map(\.task.id)
    try mustHold(task.node.dependencies.map(\.node.id) == others, "it waits for \(others)")
    runs.append(Run(task: task, kind: kind))
  }

  private static func areBeside(_ kind: PaginatedRunKind, _ other: PaginatedRunKind) -> Bool {
    switch (kind, other) {
    case (.nextPage, .previousPage), (.previousPage, .nextPage): true
    default: false
    }
  }

  /// Those begin whose turn it is.
  private mutating func begin() throws {
    for index in runs.indices where runs[index].known == nil {
      let isTurn = runs[..<index].allSatisfy { Self.areBeside(runs[index].kind, $0.kind) }
      guard isTurn else { continue }
      var context = runs[index].task.context
      state.willRun(in: &context)
      let start = context.work as? PageStart<Int, Int>
      try mustHold(start.map { Array($0.pages) } == list, "a run begins with what is there")
      try mustHold(start?.kind == runs[index].kind, "it is told what it is for")
      runs[index].known = list.map(\.id)
    }
  }

  /// The identifiers that a run fetches, and where they go.
  private func found(by run: Run) -> (ids: [Int], place: PagePlace<Int>) {
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

  private func page(_ id: Int, at place: Int) -> Page {
    var page = Page(id: id, value: moment * 10 + place)
    page.edges = Self.edges(of: id)
    return page
  }

  private mutating func lands(_ index: Int?) throws -> Bool {
    guard let index else { return false }
    let (ids, place) = found(by: runs[index])
    try give(ids, place, runs[index])
    finish(index)
    return true
  }

  /// The server gives a page more that is there already, or all pages end early.
  private mutating func landsWhatIsThere(_ index: Int?) throws -> Bool {
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
  private mutating func landsNothing(_ index: Int?) throws -> Bool {
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

  private mutating func yields(_ index: Int?) throws -> Bool {
    guard let index else { return false }
    let (ids, place) = found(by: runs[index])
    if ids.isEmpty { return false }
    try give(Array(ids.prefix(2)), place == .whole ? .present : place, runs[index])
    return true
  }

  private mutating func give(_ ids: [Int], _ place: PagePlace<Int>, _ run: Run) throws {
    let pages = ids.enumerated().map { page($0.element, at: $0.offset) }
    let task = run.task
    let result = PaginatedResult(kind: run.kind, pages: PaginatedPages(pages), place: place)
    state.update(with: .success(result), for: task)
    arrivals.note(.success(()), at: moment)
    list = Self.merged(list, pages, place, limit)
    let isOpen = { (id: Int) in place == .whole || ids.contains(id) }
    if ends.before.map(isOpen) == true { ends.before = nil }
    if ends.behind.map(isOpen) == true { ends.behind = nil }
    switch place {
    case .after, .before:
      try mustHold(state.currentValue.count <= limit, "there are \(limit) pages at most")
    case .whole, .initial, .present: break
    }
  }

  /// The rules for what a run gives, for plain lists.
  private static func merged(
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

  private mutating func fails(_ index: Int?) -> Bool {
    guard let index else { return false }
    let task = runs[index].task
    state.update(with: .failure(Failed(moment: moment)), for: task)
    arrivals.note(.failure(Failed(moment: moment)), at: moment)
    finish(index)
    return true
  }

  private mutating func finish(_ index: Int) {
    state.finishFetchTask(runs[index].task)
    gone.append(runs.remove(at: index).task)
  }

  private mutating func givesUp(_ index: Int?) -> Bool {
    guard let index else { return false }
    state.giveUpFetchTask(runs[index].task)
    gone.append(runs.remove(at: index).task)
    return true
  }

  private mutating func pauses(_ index: Int?) -> Bool {
    guard let index else { return false }
    runs[index].isPaused.toggle()
    state.setPaused(runs[index].isPaused, runs[index].task.id)
    for task in gone { state.setPaused(true, task.id) }
    return true
  }
}

// What somebody sets, and what must hold.
extension PaginatedStateExhaustiveTests.Walk {
  private mutating func write(_ ids: [Int]) {
    list = ids.enumerated().map { Page(id: $0.element, value: moment * 10 + $0.offset) }
    noteCuts()
    ends = (nil, nil)
    var pages = PaginatedPages(list)
    State.prepare(&pages, in: context)
    state.update(with: .success(pages), using: context)
    arrivals.note(.success(()), at: moment)
  }

  /// An optimistic edit takes a page out of the middle.
  private mutating func shows() -> Bool {
    guard !list.isEmpty else { return false }
    list.remove(at: list.count / 2)
    noteCuts()
    var pages = state.currentValue
    pages.remove(at: pages.count / 2)
    State.prepare(&pages, in: context)
    state.show(pages, updates: 1)
    extraUpdates += 1
    return true
  }

  private mutating func noteCuts() {
    for (page, next) in zip(list, list.dropFirst()) where next.id != page.id + 1 {
      cuts.behind.insert(page.id)
      cuts.before.insert(next.id)
    }
  }

  private mutating func reset() throws {
    for cancel in state.reset(using: context).cancellations { cancel() }
    let cancelled = cancellations.take()
    try mustHold(cancelled == runs.map(\.task.id), "every run is cancelled, once")
    gone += runs.map(\.task)
    (runs, arrivals, extraUpdates) = ([], Arrivals(), 0)
    list = initial.map { Page(id: $0, value: -$0) }
    ends = (nil, nil)
  }

  private func check() throws {
    try arrivals.check(state, extraUpdates: extraUpdates)
    let pages = Array(state.currentValue)
    let ids = pages.map { $0.id }
    try mustHold(pages == list, "\(list.map(\.id)) are there, and not \(ids)")
    try mustHold(Set(ids).count == ids.count, "a page is there twice: \(ids)")
    for index in ids.indices.dropLast() {
      let (id, next) = (ids[index], ids[index + 1])
      let isSet = cuts.behind.contains(id) || cuts.before.contains(next)
      try mustHold(next == id + 1 || isSet, "there is a hole between \(id) and \(next)")
    }
    let ends = (
      ids.first.flatMap { $0 == self.ends.before ? nil : Self.edges(of: $0).before },
      ids.last.flatMap { $0 == self.ends.behind ? nil : Self.edges(of: $0).after }
    )
    try mustHold(state.previousPageId == ends.0, "the first page leads to the one before it")
    try mustHold(state.nextPageId == ends.1, "the last page leads to the one after it")
    try mustHold(state.hasPreviousPage == (ends.0 != nil), "there is a previous page, or none")
    try mustHold(state.hasNextPage == (ends.1 != nil), "there is a next page, or none")
    try mustHold(state.initialValue.ids == initial, "the initial pages stay")
    try checkRuns()
  }

  private func checkRuns() throws {
    let taskIDs = runs.map { $0.task.id }
    try mustHold(state.activeTasks.ids == taskIDs, "the runs are those that were made")
    let kinds = runs.map { $0.kind }
    try mustHold(state.isLoading == !runs.isEmpty, "it loads as long as a run is there")
    try mustHold(state.isLoadingNextPage == kinds.contains(.nextPage), "the next page is loaded")
    try mustHold(
      state.isLoadingPreviousPage == kinds.contains(.previousPage), "the previous page is loaded")
    try mustHold(
      state.isLoadingInitialPage == kinds.contains(.initialPage), "the initial page is loaded")
    let isWhole = kinds.contains(.allPages) || kinds.contains(.refetch)
    try mustHold(state.isLoadingAllPages == isWhole, "all pages are loaded")
    let isPaused = !runs.isEmpty && runs.allSatisfy { $0.isPaused }
    try mustHold(state.isPaused == isPaused, "it waits if all runs do")
    let status = state.status
    switch (runs.isEmpty, arrivals.lastError) {
    case (false, _):
      try mustHold(status.isPaused == isPaused && status.isLoading != isPaused, "it is loading")
    case (true, let error?):
      try mustHold(status == .result(.failure(error)), "the last failure is its status")
    case (true, nil):
      let expected: OperationStatus<State.StatusValue, Failed> =
        arrivals.lastValue == nil ? .idle : .result(.success(PaginatedPages(list)))
      try mustHold(status == expected, "what is there is its status, once something has come")
    }
  }

  private static func values(of released: any Sendable) -> [Int] {
    switch released {
    case let page as Page: [page.value]
    case let pages as State.StateValue: pages.map(\.value)
    default: []
    }
  }
}

extension PaginatedStateExhaustiveTests {
  @Test("No page twice, no hole, no more than the limit, and everything counted")
  func everySequence() {
    exhaust(
      "PaginatedState", events: Step.allCases, length: 4, from: Walk([1, 2, 3], limit: 3)
    ) { walk, step in try walk.take(step) }
  }

  @Test("The same where nothing is there at first")
  func everySequenceFromNothing() {
    exhaust(
      "PaginatedState, empty at first", events: Step.allCases, length: 4, from: Walk([], limit: 2)
    ) { walk, step in try walk.take(step) }
  }

  @Test("The same for longer, with nothing but runs and writes")
  func longer() {
    let steps: [Step] = [.next, .previous, .all, .landOldest, .landNewest, .yieldOldest, .write]
    exhaust(
      "PaginatedState, runs and writes", events: steps, length: 6, from: Walk([1, 2], limit: 3)
    ) { walk, step in try walk.take(step) }
  }
}
