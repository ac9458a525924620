public import FoundationEssentials

/// The state of a paginated request: its pages, and the active runs.
///
/// A run for the next page and one for the previous page run side by side. All other runs wait for
/// the active runs before them. While the state has no page, every run fetches the initial page,
/// and joins the active run that does.
public struct PaginatedState<PageID: Hashable & Sendable, PageValue: Sendable, Failure: Error>:
  ValueInitializedState, StampedState
{
  /// The pages.
  public typealias StateValue = PaginatedPages<PageID, PageValue>
  /// The type of the value that one run returns.
  public typealias OperationValue = PaginatedResult<PageID, PageValue>
  /// The pages in the status.
  public typealias StatusValue = PaginatedPages<PageID, PageValue>

  private typealias Page = PaginatedPage<PageID, PageValue>

  var facts: StateFacts<StateValue, Failure>
  /// The scheduled and running tasks, in the order in which they were created.
  public private(set) var activeTasks = IdentifiedArrayOf<OperationTask<OperationValue, Failure>>()
  /// The pages that were replaced or removed since the last ``takeReleased()``.
  private var replacedValues: [any Sendable] = []
  /// The identifiers before the first and after the last page for which a run has found no page since those
  /// pages arrived.
  private var missing = PageEdges<PageID>(before: nil, after: nil)

  /// Creates a state with initial pages, or without pages.
  public init(initialValue: StateValue = []) {
    facts = StateFacts(initialValue, isEmpty: initialValue.isEmpty)
  }

  /// No pages.
  public static var emptyValue: StateValue { [] }
  /// A paginated request.
  public static var kind: OperationKind { .pages }

  /// The current pages.
  public var currentValue: StateValue { facts.value }
  /// The pages that the state began with.
  public var initialValue: StateValue { facts.initial ?? [] }
  /// `true`: an empty list is a value.
  public var hasValue: Bool { true }
  /// A Boolean value that indicates whether the state began with a value.
  public var hasInitialValue: Bool { facts.initial != nil }
  /// The number of results without a failure since the creation or the last reset.
  public var valueUpdateCount: Int { facts.valueCount }
  /// The date of the last result with pages that were stored; `nil` before the first result.
  public var valueLastUpdatedAt: Date? { facts.valueDate }
  /// The last failure; `nil` once a run has succeeded since.
  public var error: Failure? { facts.error }
  /// The number of failures since the creation or the last reset.
  public var errorUpdateCount: Int { facts.errorCount }
  /// The date of the last failure.
  public var errorLastUpdatedAt: Date? { facts.errorDate }
}

extension PaginatedState {
  /// The identifier of the page after the last one; `nil` if there is none.
  public var nextPageId: PageID? {
    currentValue.last?.edges?.after.flatMap { $0 == missing.after ? nil : $0 }
  }
  /// The identifier of the page before the first one; `nil` if there is none.
  public var previousPageId: PageID? {
    currentValue.first?.edges?.before.flatMap { $0 == missing.before ? nil : $0 }
  }
  /// A Boolean value that indicates whether there is a page after the last one.
  ///
  /// Once a run has found no further page it is `false`, until a run or a write replaces the last page, an
  /// optimistic edit gives it another next page, or another page follows it.
  public var hasNextPage: Bool { nextPageId != nil }
  /// A Boolean value that indicates whether there is a page before the first one.
  ///
  /// Once a run has found no page before it is `false`, until a run or a write replaces the first page, an
  /// optimistic edit gives it another previous page, or another page precedes it.
  public var hasPreviousPage: Bool { previousPageId != nil }

  /// A Boolean value that indicates whether a run is scheduled or running.
  public var isLoading: Bool { !activeTasks.isEmpty }
  /// A Boolean value that indicates whether a run for the next page is scheduled or running.
  public var isLoadingNextPage: Bool { isLoading(.nextPage) }
  /// A Boolean value that indicates whether a run for the previous page is scheduled or running.
  public var isLoadingPreviousPage: Bool { isLoading(.previousPage) }
  /// A Boolean value that indicates whether a run for all pages is scheduled or running.
  public var isLoadingAllPages: Bool { isLoading(.allPages) || isLoading(.refetch) }
  /// A Boolean value that indicates whether a run for the initial page is scheduled or running.
  public var isLoadingInitialPage: Bool { isLoading(.initialPage) }

  private func isLoading(_ kind: PaginatedRunKind) -> Bool {
    activeTasks.contains { $0.context.pageRunKind == kind }
  }

  /// A Boolean value that indicates whether there are active runs and all wait for a connection.
  public var isPaused: Bool { isLoading && activeTasks.allSatisfy { $0.isPaused } }

  /// The retry that a run in flight waits for; that of the newest such run.
  public var retry: OperationRetry<Failure>? { activeTasks.newestRetry() }

  /// Records the retry that a run waits for.
  public mutating func setRetry(_ retry: OperationRetry<Failure>?, _ id: OperationTaskID) {
    activeTasks[id: id]?.retry = retry
  }

  /// Records whether a run waits for a connection.
  public mutating func setPaused(_ isPaused: Bool, _ id: OperationTaskID) {
    activeTasks[id: id]?.isPaused = isPaused
  }
}

extension PaginatedState {
  /// Returns the newest active run for the initial page if the state has no page; otherwise `nil`.
  public func taskToJoin(in context: inout OperationContext) -> OperationTaskID? {
    guard currentValue.isEmpty else { return nil }
    context.pageRunKind = .initialPage
    return activeTasks.last { $0.context.pageRunKind == .initialPage }?.id
  }

  /// Writes the current pages into the context of the run. Without pages, it is for the initial one.
  public func willRun(in context: inout OperationContext) {
    if currentValue.isEmpty, context.pageRunKind != .initialPage {
      context.pageRunKind = .initialPage
    }
    let refetch = context.settings.values.pages.refetch as? PaginatedRefetch<PageID, PageValue>
    let start = PageStart(
      kind: context.pageRunKind, pages: currentValue, stamp: facts.stamp,
      refetch: refetch ?? .allPages)
    context.changeFacts { $0.work = start }
  }

  /// Finds the pages before and after those that are set.
  public static func prepare(_ value: inout StateValue, in context: OperationContext) {
    let finder = context.settings.values.pages.edges as? PageEdgeFinder<PageID, PageValue>
    finder?.complete(&value, in: context)
  }

  /// Finds the pages before and after the initial ones.
  public mutating func prepareInitialValue(in context: OperationContext) {
    if var pages = facts.initial {
      Self.prepare(&pages, in: context)
      facts.initial = pages
    }
    Self.prepare(&facts.value, in: context)
  }

  /// Adds a scheduled task, and makes it wait for the active tasks that cannot run beside it.
  public mutating func scheduleFetchTask(_ task: inout OperationTask<OperationValue, Failure>) {
    let kind = task.context.pageRunKind
    for other in activeTasks where !kind.runsBeside(other.context.pageRunKind) {
      task.schedule(after: other)
    }
    activeTasks.append(task)
  }

  /// Notes what a run is for, if that is not what it was scheduled for, or is that again.
  public mutating func startFetchTask(_ task: OperationTask<OperationValue, Failure>) {
    guard var context = activeTasks[id: task.id]?.context else { return }
    context.pageRunKind = task.context.pageRunKind
    activeTasks[id: task.id]?.setContext(context)
  }

  /// Stores a result that was set.
  public mutating func update(
    with result: Result<StateValue, Failure>, using context: OperationContext
  ) {
    if case .success(let pages) = result { replaceAll(with: pages) }
    facts.note(result, at: context.now())
  }

  /// Stores a result of a run.
  public mutating func update(
    with result: Result<OperationValue, Failure>,
    for task: OperationTask<OperationValue, Failure>
  ) {
    if case .success(let result) = result {
      merge(result, limit: task.context.settings.values.pages.limit)
      let isStored = !result.isPart || result.pages.contains { facts.value.index(id: $0.id) != nil }
      // The pages are as old as before if none was fetched, or what was fetched is dropped.
      if !isStored, let date = facts.valueDate { return facts.succeed(at: date) }
    }
    facts.note(result, at: task.box.now())
  }

  /// Puts fetched pages into their place, and removes pages beyond the limit at the other end.
  ///
  /// The pages of the state follow each other without a gap. So a page is dropped if the one that
  /// it was fetched from has been removed, by the limit or by a write.
  private mutating func merge(_ result: OperationValue, limit: Int) {
    switch result.place {
    case .whole: replaceAll(with: result.pages)
    case .initial where result.pages.allSatisfy({ facts.value.index(id: $0.id) == nil }):
      replaceAll(with: result.pages)
    case .initial, .present:
      for page in result.pages { store(page) }
    case .after(let neighbour): add(result, beside: neighbour, offset: 1, limit: limit)
    case .before(let neighbour): add(result, beside: neighbour, offset: 0, limit: limit)
    }
  }

  /// Adds fetched pages, or notes that there are none, and removes pages beyond the limit at the other end.
  /// It removes fewer if a write since the beginning of the run has left the page that would be the first
  /// or the last one without its neighbours.
  private mutating func add(
    _ result: OperationValue, beside neighbour: PageID, offset: Int, limit: Int
  ) {
    let isAfter = offset == 1
    let end = isAfter ? facts.value.last : facts.value.first
    if result.pages.isEmpty, let end, end.id == neighbour {
      setMissing(
        before: isAfter ? missing.before : end.edges?.before,
        after: isAfter ? end.edges?.after : missing.after)
    }
    for page in result.pages { store(page, beside: neighbour, offset: offset) }
    var excess = max(0, facts.value.count - limit)
    if excess > 0, let (page, stamp) = result.newEnd, stamp == facts.stamp {
      facts.value.update(id: page.id) { $0.edges = page.edges }
    }
    while excess > 0,
      facts.value[isAfter ? excess : facts.value.count - 1 - excess].edges == nil
    { excess -= 1 }
    for _ in 0..<excess {
      replacedValues.append(facts.value.remove(at: isAfter ? 0 : facts.value.count - 1))
    }
  }

  private mutating func replaceAll(with pages: StateValue) {
    replacedValues.append(facts.value)
    facts.value = pages
    setMissing(before: nil, after: nil)
  }

  private mutating func setMissing(before: PageID?, after: PageID?) {
    if before == missing.before, after == missing.after { return }
    replacedValues.append(missing)
    missing = PageEdges(before: before, after: after)
  }

  /// Replaces the page with the same identifier, or inserts the page at an offset from another one if that is in
  /// the state. Otherwise the page is dropped.
  private mutating func store(_ page: Page, beside neighbour: PageID? = nil, offset: Int = 0) {
    if let old = facts.value.update(id: page.id, { exchange(&$0, with: page) }) {
      replacedValues.append(old)
    } else if let neighbour, let index = facts.value.index(id: neighbour) {
      facts.value.insert(page, at: index + offset)
    }
    // If it is the first or the last one, there may be a page beyond it now.
    setMissing(
      before: facts.value.first?.id == page.id ? nil : missing.before,
      after: facts.value.last?.id == page.id ? nil : missing.after)
  }

  /// Removes a task that has ended.
  public mutating func finishFetchTask(_ task: OperationTask<OperationValue, Failure>) {
    activeTasks.remove(id: task.id)
  }

  /// Restores the initial pages, and returns an effect that cancels the active tasks.
  public mutating func reset(using context: OperationContext) -> ResetEffect {
    defer { self = PaginatedState(initialValue: initialValue) }
    return ResetEffect(tasksToCancel: activeTasks)
  }

  /// Returns the pages that were replaced or removed.
  public mutating func takeReleased() -> [any Sendable] { exchange(&replacedValues, with: []) }
}

extension PaginatedState: EditableState {
  /// Replaces the displayed pages, and adds to the number of updates.
  public mutating func show(_ value: StateValue, updates: Int) {
    facts.show(value, updates: updates)
  }
}

extension PaginatedState: DefaultableState {
  /// Returns the pages, or `fallback` if there are none.
  public static func value(_ value: StateValue, default fallback: StateValue) -> StateValue {
    value.isEmpty ? fallback : value
  }

  /// Returns the pages themselves.
  public static func stateValue(_ value: StateValue) -> StateValue { value }
}

extension PaginatedRunKind {
  /// Whether a run of this kind fetches only a further page, and not the whole value.
  var isForFurtherPage: Bool { self == .nextPage || self == .previousPage }

  /// Returns a Boolean value that indicates whether two runs of these kinds can run side by side.
  fileprivate func runsBeside(_ other: PaginatedRunKind) -> Bool {
    self != other && isForFurtherPage && other.isForFurtherPage
  }
}
