import FoundationEssentials
import TestSupport
import Testing

@testable import Operation

// Writes, and checks.
extension PaginatedStateExhaustiveTests.Walk {
  mutating func write(_ ids: [Int]) {
    list = ids.enumerated().map { Page(id: $0.element, value: moment * 10 + $0.offset) }
    noteCuts()
    ends = (nil, nil)
    var pages = PaginatedPages(list)
    State.prepare(&pages, in: context)
    state.update(with: .success(pages), using: context)
    arrivals.note(.success(()), at: moment)
  }

  /// An optimistic edit removes a page from the middle.
  mutating func shows() -> Bool {
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

  mutating func noteCuts() {
    for (page, next) in zip(list, list.dropFirst()) where next.id != page.id + 1 {
      cuts.behind.insert(page.id)
      cuts.before.insert(next.id)
    }
  }

  mutating func reset() throws {
    for cancel in state.reset(using: context).cancellations { cancel() }
    let cancelled = cancellations.take()
    try mustHold(cancelled == runs.map(\.task.id), "every run is cancelled, once")
    gone += runs.map(\.task)
    (runs, arrivals, extraUpdates) = ([], Arrivals(), 0)
    list = initial.map { Page(id: $0, value: -$0) }
    ends = (nil, nil)
  }

  func check() throws {
    try arrivals.check(state, extraUpdates: extraUpdates)
    let pages = Array(state.currentValue)
    let ids = pages.map { $0.id }
    try mustHold(pages == list, "\(list.map(\.id)) are present, and not \(ids)")
    try mustHold(Set(ids).count == ids.count, "a page is present twice: \(ids)")
    for index in ids.indices.dropLast() {
      let (id, next) = (ids[index], ids[index + 1])
      let isSet = cuts.behind.contains(id) || cuts.before.contains(next)
      try mustHold(next == id + 1 || isSet, "there is a gap between \(id) and \(next)")
    }
    let ends = (
      ids.first.flatMap { $0 == self.ends.before ? nil : Self.edges(of: $0).before },
      ids.last.flatMap { $0 == self.ends.behind ? nil : Self.edges(of: $0).after }
    )
    try mustHold(state.previousPageId == ends.0, "the first page leads to the one before it")
    try mustHold(state.nextPageId == ends.1, "the last page leads to the one after it")
    try mustHold(state.hasPreviousPage == (ends.0 != nil), "there is a previous page, or none")
    try mustHold(state.hasNextPage == (ends.1 != nil), "there is a next page, or none")
    try mustHold(state.initialValue.ids == initial, "the initial pages are unchanged")
    try checkRuns()
  }

  func checkRuns() throws {
    let taskIDs = runs.map { $0.task.id }
    try mustHold(state.activeTasks.ids == taskIDs, "the runs are the scheduled ones")
    let kinds = runs.map { $0.kind }
    try mustHold(state.isLoading == !runs.isEmpty, "the state is loading while there is a run")
    try mustHold(state.isLoadingNextPage == kinds.contains(.nextPage), "the next page is loaded")
    try mustHold(
      state.isLoadingPreviousPage == kinds.contains(.previousPage), "the previous page is loaded")
    try mustHold(
      state.isLoadingInitialPage == kinds.contains(.initialPage), "the initial page is loaded")
    let isWhole = kinds.contains(.allPages) || kinds.contains(.refetch)
    try mustHold(state.isLoadingAllPages == isWhole, "all pages are loaded")
    let isPaused = !runs.isEmpty && runs.allSatisfy { $0.isPaused }
    try mustHold(state.isPaused == isPaused, "the state is paused if all runs are paused")
    let status = state.status
    switch (runs.isEmpty, arrivals.lastError) {
    case (false, _):
      try mustHold(
        status.isPaused == isPaused && status.isLoading != isPaused,
        "the status is loading or paused")
    case (true, let error?):
      try mustHold(status == .result(.failure(error)), "the status is the last failure")
    case (true, nil):
      let expected: OperationStatus<State.StatusValue, Failed> =
        arrivals.lastValue == nil ? .idle : .result(.success(PaginatedPages(list)))
      try mustHold(status == expected, "the status is the current pages, once a value has come")
    }
  }

  static func values(of released: any Sendable) -> [Int] {
    switch released {
    case let page as Page: [page.value]
    case let pages as State.StateValue: pages.map(\.value)
    default: []
    }
  }
}
