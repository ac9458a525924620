public import FoundationEssentials

/// The state of a paginated request: the pages that are there, and what is under way.
///
/// Next and previous pages are fetched side by side. A run for all pages waits for both, and they
/// wait for it; two runs for the next page, or for the previous one, come one after the other.
/// While there is no page, every run means the initial page, and joins the one for it that is
/// under way.
public struct PaginatedState<PageID: Hashable & Sendable, PageValue: Sendable, Failure: Error>:
  ValueInitializedState
{
  /// The pages.
  public typealias StateValue = PaginatedPages<PageID, PageValue>
  /// What one run gives.
  public typealias OperationValue = PaginatedResult<PageID, PageValue>
  /// The pages in the status.
  public typealias StatusValue = PaginatedPages<PageID, PageValue>

  var facts: StateFacts<StateValue, Failure>
  var tasks = IdentifiedArrayOf<OperationTask<OperationValue, Failure>>()
  /// What the last changes have driven out.
  var released: [any Sendable] = []

  /// Creates a state that begins with some pages, or with none.
  public init(initialValue: StateValue = []) {
    facts = StateFacts(initialValue, isEmpty: initialValue.isEmpty)
  }

  /// The pages that are there.
  public var currentValue: StateValue { facts.value }
  /// How often pages came since the beginning or the last reset.
  public var valueUpdateCount: Int { facts.valueCount }
  /// When the last page came.
  public var valueLastUpdatedAt: Date? { facts.valueDate }
  /// What went wrong last; `nil` once a page has come.
  public var error: Failure? { facts.error }
  /// How often something went wrong since the beginning or the last reset.
  public var errorUpdateCount: Int { facts.errorCount }
  /// When something went wrong last.
  public var errorLastUpdatedAt: Date? { facts.errorDate }
  /// The pages that the state began with.
  public var initialValue: StateValue { facts.initial ?? [] }
  /// The tasks that are scheduled or under way, in the order in which they were made.
  public var activeTasks: IdentifiedArrayOf<OperationTask<OperationValue, Failure>> {
    tasks
  }

  /// No pages.
  public static var emptyValue: StateValue { [] }
  /// A request that reads page by page.
  public static var kind: OperationKind { .pages }
}

extension PaginatedState {
  /// The identifier of the page after the last one that is there.
  public var nextPageId: PageID? { currentValue.last?.edges?.after }
  /// The identifier of the page before the first one that is there.
  public var previousPageId: PageID? { currentValue.first?.edges?.before }
  /// Whether there is a page after the last one that is there.
  public var hasNextPage: Bool { nextPageId != nil }
  /// Whether there is a page before the first one that is there.
  public var hasPreviousPage: Bool { previousPageId != nil }

  /// Whether a run is scheduled or under way.
  public var isLoading: Bool { !tasks.isEmpty }
  /// Whether a run for the next page is scheduled or under way.
  public var isLoadingNextPage: Bool { isLoading(.nextPage) }
  /// Whether a run for the previous page is scheduled or under way.
  public var isLoadingPreviousPage: Bool { isLoading(.previousPage) }
  /// Whether a run for all pages is scheduled or under way.
  public var isLoadingAllPages: Bool { isLoading(.allPages) || isLoading(.refetch) }
  /// Whether a run for the initial page is scheduled or under way.
  public var isLoadingInitialPage: Bool { isLoading(.initialPage) }

  func isLoading(_ kind: PaginatedRunKind) -> Bool {
    tasks.contains { $0.context.pageRunKind == kind }
  }

  /// Whether every run that is under way waits for a connection.
  public var isPaused: Bool { isLoading && tasks.allSatisfyInPlace { $0.isPaused } }

  /// Takes in that a run begins to wait for a connection, or goes on.
  public mutating func setPaused(_ isPaused: Bool, _ id: OperationTaskID) {
    tasks[id: id]?.isPaused = isPaused
  }

  /// Where the state is.
  public var status: OperationStatus<StatusValue, Failure> {
    if isLoading { return isPaused ? .paused : .loading }
    if let error { return .result(.failure(error)) }
    return valueLastUpdatedAt == nil ? .idle : .result(.success(currentValue))
  }
}

extension PaginatedState {
  /// Gives the run for the initial page that is under way, if there is no page.
  public func taskToJoin(in context: inout OperationContext) -> OperationTaskID? {
    guard currentValue.isEmpty else { return nil }
    context.pageRunKind = .initialPage
    return tasks.first { $0.context.pageRunKind == .initialPage }?.id
  }

  /// Tells the run which pages are there.
  public func willRun(in context: inout OperationContext) {
    let refetch = context.settings.values.refetch as? PaginatedRefetch<PageID, PageValue>
    context.work = PageStart(
      kind: context.pageRunKind, pages: currentValue, refetch: refetch ?? .allPages)
  }

  /// Completes what somebody sets by the pages that are beside it.
  public static func prepare(_ value: inout StateValue, in context: OperationContext) {
    let finder = context.settings.values.pageEdges as? PageEdgeFinder<PageID, PageValue>
    finder?.complete(&value, in: context)
  }

  /// Completes the pages that the state begins with by those that are beside them.
  public mutating func prepareInitialValue(in context: OperationContext) {
    if var pages = facts.initial {
      Self.prepare(&pages, in: context)
      facts.rest.content.initial = pages
    }
    Self.prepare(&facts.value, in: context)
  }

  /// Takes in a scheduled task, and makes it wait for those that must not run beside it.
  public mutating func scheduleFetchTask(
    _ task: inout OperationTask<OperationValue, Failure>
  ) {
    let kind = task.context.pageRunKind
    for other in tasks where !kind.runsBeside(other.context.pageRunKind) {
      task.schedule(after: other)
    }
    tasks.append(task)
  }

  /// Takes in pages that somebody set.
  public mutating func update(
    with result: Result<StateValue, Failure>, using context: OperationContext
  ) {
    switch result {
    case .success(let pages):
      released.append(facts.value)
      facts.succeed(with: pages, at: context.now())
    case .failure(let failure):
      facts.fail(with: failure, at: context.now())
    }
  }

  /// Takes in the pages that a run gave.
  public mutating func update(
    with result: Result<OperationValue, Failure>,
    for task: OperationTask<OperationValue, Failure>
  ) {
    let now = task.box.now()
    switch result {
    case .success(let result):
      merge(result, limit: task.context.settings.values.maxPages)
      facts.succeed(at: now)
    case .failure(let failure):
      facts.fail(with: failure, at: now)
    }
  }

  /// Puts pages where they belong. A page whose neighbour has gone meanwhile, because of the limit
  /// or because somebody wrote, is left out: it would leave a hole before or behind it.
  mutating func merge(_ result: OperationValue, limit: Int) {
    switch result.place {
    case .initial where result.pages.contains { isPresent($0) }, .present:
      for page in result.pages where isPresent(page) { replace(with: page) }
    case .whole, .initial:
      released.append(facts.value)
      facts.value = result.pages
    case .after(let neighbour):
      for page in result.pages { insert(page, beside: neighbour, offset: 1) }
      for page in facts.value.prefix(max(facts.value.count - limit, 0)) { released.append(page) }
      facts.value.removeFirst(facts.value.count - limit)
    case .before(let neighbour):
      for page in result.pages { insert(page, beside: neighbour, offset: 0) }
      for page in facts.value.dropFirst(limit) { released.append(page) }
      facts.value.removeLast(facts.value.count - limit)
    }
  }

  func isPresent(_ page: PaginatedPage<PageID, PageValue>) -> Bool {
    facts.value.index(id: page.id) != nil
  }

  /// Puts a page in the place of the one with its identifier, or behind all.
  mutating func replace(with page: PaginatedPage<PageID, PageValue>) {
    if let old = facts.value.appendOrReplace(page) { released.append(old) }
  }

  mutating func insert(
    _ page: PaginatedPage<PageID, PageValue>, beside neighbour: PageID, offset: Int
  ) {
    let index = facts.value.index(id: neighbour).map { $0 + offset }
    if index == facts.value.count || isPresent(page) {
      replace(with: page)
    } else if let index {
      facts.value.insertNew(page, at: index)
    }
  }

  /// Takes out a task that is over.
  public mutating func finishFetchTask(_ task: OperationTask<OperationValue, Failure>) {
    tasks.remove(id: task.id)
  }

  /// Goes back to the initial pages.
  public mutating func reset(using context: OperationContext) -> ResetEffect {
    defer { self = PaginatedState(initialValue: initialValue) }
    return ResetEffect(tasksToCancel: tasks)
  }

  /// Gives the pages that have gone.
  public mutating func takeReleased() -> [any Sendable] {
    if released.isEmpty { return [] }
    defer { released = [] }
    return released
  }
}

extension PaginatedState: EditableState {
  /// Shows other pages.
  public mutating func show(_ value: StateValue, updates: Int) {
    facts.show(value, updates: updates)
  }
}

extension PaginatedState: DefaultableState {
  /// The pages, or `fallback` where there are none.
  public static func value(_ value: StateValue, default fallback: StateValue) -> StateValue {
    value.isEmpty ? fallback : value
  }

  /// The pages themselves.
  public static func stateValue(_ value: StateValue) -> StateValue { value }
}

extension PaginatedRunKind {
  /// Whether a run may go on beside another one.
  func runsBeside(_ other: PaginatedRunKind) -> Bool {
    switch (self, other) {
    case (.nextPage, .previousPage), (.previousPage, .nextPage): true
    default: false
    }
  }
}

extension OperationContext {
  /// What the run is for.
  var pageRunKind: PaginatedRunKind {
    get { run?.pageKind ?? .refetch }
    set { input = PageRunInput.of(newValue) }
  }
}
