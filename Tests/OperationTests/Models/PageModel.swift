import Operation

/// The answer of a server for a page: the version, and the pages beside it.
struct PageEntry: Sendable, Equatable {
  var version: Int
  var next: Int?
  var previous: Int?
}

/// A list of pages that changes between fetches, and whose fetches can fail.
struct PageWorld: Sendable {
  /// How the list changes.
  enum Change: Sendable {
    case insert(Int, at: Int), remove(at: Int), renumber(Int, at: Int)
    /// Every page has a new version.
    case touch
    /// The last page begins or ceases to lead to the first one.
    case bend
    /// The next fetches of a page fail.
    case fail(at: Int, times: Int)
  }

  private(set) var ids: [Int]
  private var version = 0
  private var isCyclic = false
  private var failures: [Int: Int] = [:]
  /// The requested pages, in the order of the requests.
  private(set) var requests: [Int] = []

  init(count: Int) { ids = Array(0..<count) }

  /// The page that is fetched if the list of a store is empty.
  var initial: Int { ids.isEmpty ? 0 : ids[ids.count / 2] }

  mutating func perform(_ change: Change) {
    switch change {
    case .insert(let id, let index): ids.insert(id, at: min(index, ids.count))
    case .remove(let index): if ids.indices.contains(index) { ids.remove(at: index) }
    case .renumber(let id, let index): if ids.indices.contains(index) { ids[index] = id }
    case .touch: version += 1
    case .bend: isCyclic.toggle()
    case .fail(let index, let times):
      if ids.indices.contains(index) { failures[ids[index]] = times }
    }
  }

  /// Returns the answer of the server to a fetch. A missing page is a failure.
  mutating func answer(_ id: Int) -> PageEntry? {
    requests.append(id)
    if let left = failures[id], left > 0 {
      failures[id] = left - 1
      return nil
    }
    guard let index = ids.firstIndex(of: id) else { return nil }
    let after = index + 1 < ids.count ? ids[index + 1] : isCyclic ? ids.first : nil
    let before = index > 0 ? ids[index - 1] : isCyclic ? ids.last : nil
    return PageEntry(version: version, next: after, previous: before)
  }
}

/// A plain model of a store of pages: lists, and the rules for them.
struct PageModel: Sendable {
  typealias Page = PaginatedPage<Int, PageEntry>

  enum Call: String, Sendable, CaseIterable { case next, previous, all, plain }

  /// The pages that a plain fetch fetches again.
  enum Refetch: String, Sendable, CaseIterable { case all, first, picked }

  struct Run: Sendable {
    let call: Call
    let isInitial: Bool
    /// The number of invalidations before the run was requested.
    let generation: Int
    var known: [Page] = []
    var fetched: [Page] = []
    var picks: [Int]?
    var attemptsLeft: Int
    /// The fetch in flight, and the answer of the server to it.
    var pending: (id: Int, entry: PageEntry?)?
    /// Whether the run has succeeded; nil until it ends.
    var hasSucceeded: Bool?
  }

  var world: PageWorld
  let limit: Int
  let retries: Int
  let refetch: Refetch
  private(set) var pages: [Page] = []
  private(set) var hasFailed = false
  private(set) var isInvalidated = false
  private var generation = 0

  init(world: PageWorld, limit: Int, retries: Int, refetch: Refetch) {
    (self.world, self.limit, self.retries, self.refetch) = (world, limit, retries, refetch)
  }

  /// Returns the pages that a plain fetch picks: every other page, the last one first.
  static func picks(_ ids: [Int]) -> [Int] {
    Array(ids.enumerated().filter { $0.offset % 2 == 0 }.map(\.element).reversed())
  }

  func schedule(_ call: Call) -> Run {
    Run(call: call, isInitial: pages.isEmpty, generation: generation, attemptsLeft: retries)
  }

  /// Begins a run that no longer waits for other runs.
  mutating func begin(_ run: inout Run) {
    run.known = pages
    if run.call == .plain, refetch == .picked, !pages.isEmpty {
      run.picks = Self.picks(pages.map(\.id))
    }
    proceed(&run)
  }

  /// Answers the fetch of a run in flight.
  mutating func answer(_ run: inout Run) {
    guard let (id, entry) = run.pending else { return }
    run.pending = nil
    if let entry {
      run.fetched.append(Page(id: id, value: entry))
      if run.picks != nil { run.picks?.removeFirst() }
    } else if run.attemptsLeft > 0 {
      run.attemptsLeft -= 1
    } else {
      run.hasSucceeded = false
      hasFailed = true
      return
    }
    proceed(&run)
  }

  private mutating func proceed(_ run: inout Run) {
    if let id = nextID(of: run) {
      run.pending = (id, world.answer(id))
    } else {
      run.hasSucceeded = true
      merge(run)
    }
  }

  private func isWhole(_ run: Run) -> Bool {
    run.call == .all || (run.call == .plain && refetch == .all)
  }

  private func nextID(of run: Run) -> Int? {
    if let picks = run.picks { return picks.first }
    if let last = run.fetched.last {
      // A fetch of all pages ends when it has as many pages as the list had, or when a page repeats.
      let isComplete = run.known.isEmpty || run.fetched.count == run.known.count
      guard isWhole(run), !isComplete else { return nil }
      return last.value.next.flatMap { next in
        run.fetched.contains { $0.id == next } ? nil : next
      }
    }
    guard let first = run.known.first, let last = run.known.last else { return world.initial }
    switch run.call {
    case .next: return last.value.next
    case .previous: return first.value.previous
    case .all, .plain: return first.id
    }
  }

  private mutating func merge(_ run: Run) {
    hasFailed = false
    let isAboutWhole = run.isInitial || run.call == .all || run.call == .plain
    if isAboutWhole { isInvalidated = run.generation < generation }
    guard let first = run.known.first, let last = run.known.last else {
      if run.fetched.contains(where: { isPresent($0.id) }) { return replace(run.fetched) }
      return pages = run.fetched
    }
    switch run.call {
    case .all: pages = run.fetched
    case .plain: if refetch == .all { pages = run.fetched } else { replace(run.fetched) }
    case .next: insert(run.fetched, beside: last.id, offset: 1)
    case .previous: insert(run.fetched, beside: first.id, offset: 0)
    }
  }

  private func isPresent(_ id: Int) -> Bool { pages.contains { $0.id == id } }

  private mutating func replace(_ new: [Page]) {
    pages = pages.map { page in new.first { $0.id == page.id } ?? page }
  }

  /// Inserts pages beside the page that led to them, unless that is no longer present. Above the limit
  /// pages at the other end are dropped.
  private mutating func insert(_ new: [Page], beside neighbour: Int, offset: Int) {
    for page in new {
      if isPresent(page.id) {
        replace([page])
      } else if let index = pages.firstIndex(where: { $0.id == neighbour }) {
        pages.insert(page, at: index + offset)
      }
    }
    guard pages.count > limit else { return }
    pages = Array(offset == 1 ? pages.suffix(limit) : pages.prefix(limit))
  }

  mutating func write(_ new: [Page]) {
    pages = new
    (hasFailed, isInvalidated) = (false, false)
  }

  mutating func reset() {
    pages = []
    (hasFailed, isInvalidated) = (false, false)
  }

  mutating func invalidate() {
    generation += 1
    isInvalidated = true
  }
}
