@testable import Operation
import TestSupport
import Testing

@Suite struct PageModelTests {
  @Test("Pages of a server whose list changes between the fetches match a plain list")
  func schedules() async {
    await Schedules.each("Pages") { seed in
      try await Schedule(seed: seed).run()
    }
  }

  private enum Disturbance {
    case none, write([Int]), reset, cancel, cancelFirst, change(PageWorld.Change), invalidate
  }

  private enum Step {
    case change(PageWorld.Change), call(PageModel.Call), write([Int]), reset, invalidate
    case beside(PageModel.Call, PageModel.Call, Disturbance, isSecondFirst: Bool)
  }

  private typealias Store = OperationStore<PaginatedState<Int, PageEntry, any Error>>
  private typealias Pages = PaginatedPages<Int, PageEntry>

  /// One store beside the model.
  private final class Schedule {
    private let server: WorldServer
    private let store: Store
    private let notified = Recorder<Pages>()
    private var subscription: OperationSubscription?
    private var model: PageModel
    private var random: SplitMix
    private var nextID = 100
    private var trace: [Step] = []

    init(seed: UInt64) {
      random = SplitMix(seed: seed)
      let world = PageWorld(count: Int.random(in: 1...5, using: &random))
      model = PageModel(
        world: world, limit: [.max, .max, 1, 2, 3].randomElement(using: &random) ?? .max,
        retries: [0, 0, 1].randomElement(using: &random) ?? 0,
        refetch: PageModel.Refetch.allCases.randomElement(using: &random) ?? .all)
      server = WorldServer(world)
      store = Self.makeStore(WorldPages(server: server), model)
      guard Bool.random(using: &random) else { return }
      subscription = store.subscribe { [notified] event in
        if case .stateChanged(let state) = event { notified.append(state.currentValue) }
      }
    }

    private static func makeStore(_ pages: WorldPages, _ model: PageModel) -> Store {
      let client = OperationClient(defaults: .quiet(), clock: ManualClock())
      let refetch: PaginatedRefetch<Int, PageEntry> =
        switch model.refetch {
        case .all: .allPages
        case .first: .firstPage
        case .picked: .pages { PageModel.picks($0.ids) }
        }
      let request = pages.retry(limit: model.retries).backoff(.noBackoff).refetching(refetch)
      return model.limit == .max
        ? client.store(for: request) : client.store(for: request.maxPages(model.limit))
    }

    func run() async throws {
      for _ in 0..<Int.random(in: 4...14, using: &random) {
        let step = randomStep()
        trace.append(step)
        try await take(step)
        try check()
      }
      subscription?.cancel()
    }

    private func isRight(_ condition: Bool, _ sentence: @autoclosure () -> String) throws {
      try mustHold(
        condition,
        "\(sentence()); limit \(model.limit), \(model.retries) retries, a fetch is for "
          + "\(model.refetch.rawValue): \(trace.listed)")
    }

    // MARK: Steps

    private func randomStep() -> Step {
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<5: return .change(randomChange())
      case 5..<13: return .call(randomCall())
      case 13: return .write(randomIDs())
      case 14: return Int.random(in: 0..<3, using: &random) == 0 ? .reset : .call(.next)
      // With a subscriber an invalidation would start a run.
      case 15: return subscription == nil ? .invalidate : .call(.all)
      default:
        return .beside(
          randomCall(), randomCall(), randomDisturbance(),
          isSecondFirst: Bool.random(using: &random))
      }
    }

    private func randomCall() -> PageModel.Call {
      [.next, .next, .previous, .previous, .all, .plain].randomElement(using: &random) ?? .next
    }

    private func randomChange() -> PageWorld.Change {
      let index = Int.random(in: 0..<max(model.world.ids.count, 1), using: &random)
      nextID += 1
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<3: return .insert(nextID, at: index)
      case 3..<5: return .remove(at: index)
      case 5: return .renumber(nextID, at: index)
      case 6: return .bend
      case 7: return .fail(at: index, times: Int.random(in: 1...2, using: &random))
      default: return .touch
      }
    }

    private func randomDisturbance() -> Disturbance {
      switch Int.random(in: 0..<12, using: &random) {
      case 0..<3: return .change(randomChange())
      case 3..<5: return .write(randomIDs())
      case 5: return .reset
      case 6: return .cancel
      case 7: return .cancelFirst
      case 8: return subscription == nil ? .invalidate : .none
      default: return .none
      }
    }

    /// Some of the present pages, and sometimes another one.
    private func randomIDs() -> [Int] {
      var ids = model.pages.map(\.id).filter { _ in Int.random(in: 0..<3, using: &random) > 0 }
      if Int.random(in: 0..<3, using: &random) == 0 { ids.append(model.world.initial) }
      return ids.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    private func take(_ step: Step) async throws {
      switch step {
      case .change(let change): perform(change)
      case .write(let ids): write(ids)
      case .reset: reset()
      case .invalidate: invalidate()
      case .call(let call): try await alone(call)
      case .beside(let one, let other, let disturbance, let isSecondFirst):
        try await beside(one, other, disturbance, isSecondFirst)
      }
    }

    private func perform(_ change: PageWorld.Change) {
      server.perform(change)
      model.world.perform(change)
    }

    private func write(_ ids: [Int]) {
      let pages = ids.map { id in
        model.pages.first { $0.id == id }
          ?? PaginatedPage(id: id, value: PageEntry(version: -1, next: id + 1, previous: nil))
      }
      model.write(pages)
      store.currentValue = Pages(pages)
    }

    private func reset() {
      model.reset()
      store.resetState()
    }

    private func invalidate() {
      model.invalidate()
      store.invalidate()
    }

    // MARK: Calls

    /// Begins a call at once, so that its run is in the store, and can be cancelled, when this returns.
    private func start(_ call: PageModel.Call) -> Task<[Int], any Error> {
      Task.immediate { [store] in
        switch call {
        case .next: try await store.fetchNextPage().map { [$0.id] } ?? []
        case .previous: try await store.fetchPreviousPage().map { [$0.id] } ?? []
        case .all: try await store.fetchAllPages().ids
        case .plain: try await store.fetch().pages.ids
        }
      }
    }

    private func alone(_ call: PageModel.Call) async throws {
      var run = model.schedule(call)
      let before = notified.count
      let pages = model.pages
      model.begin(&run)
      while run.hasSucceeded == nil { model.answer(&run) }
      try await expect(run, from: start(call))
      guard subscription != nil else { return }
      // All changes of a run are displayed at once.
      let displayed = notified.all[before...].filter { $0.elements != pages }
      try isRight(
        displayed.allSatisfy { $0.elements == model.pages },
        "pages are displayed one after the other")
    }

    private func expect(_ run: PageModel.Run, from call: Task<[Int], any Error>) async throws {
      switch await call.result {
      case .success(let ids):
        try isRight(
          run.hasSucceeded == true && ids == run.fetched.map(\.id),
          "\(run.call) returns \(ids), and not \(run.fetched.map(\.id))")
      case .failure(let error):
        try isRight(
          run.hasSucceeded == false && error is Failed || run.hasSucceeded == nil,
          "\(run.call) ends with \(error)")
      }
    }

    /// Makes two calls, the second one before the first one has ended, with a disturbance in between.
    private func beside(
      _ one: PageModel.Call, _ other: PageModel.Call, _ disturbance: Disturbance,
      _ isSecondFirst: Bool
    ) async throws {
      server.hold()
      var pair = Pair(runs: [model.schedule(one)], isShared: false)
      model.begin(&pair.runs[0])
      var calls = [start(one)]
      try await until {
        store.leaseCount == 1 && server.requests.count == model.world.requests.count
          || pair.runs[0].hasSucceeded != nil && !store.isLoading
      }
      if pair.runs[0].hasSucceeded == nil {
        pair.isShared = model.pages.isEmpty || one == other
        if !pair.isShared {
          var second = model.schedule(other)
          pair.isSideBySide = Set([one, other]) == [.next, .previous]
          if pair.isSideBySide { model.begin(&second) }
          pair.runs.append(second)
        }
        let hasEnded = pair.runs.last?.hasSucceeded != nil
        calls.append(start(other))
        if hasEnded { _ = await calls[1].result }
        try await until { store.leaseCount == (hasEnded ? 1 : 2) }
        try await untilRequested()
        try await disturb(disturbance, &pair, calls)
        try await finish(&pair, isSecondFirst)
      }
      server.release()
      for (index, call) in calls.enumerated() {
        let run = pair.runs[pair.isShared ? 0 : index]
        let isCallCancelled = pair.isCancelled || (pair.isFirstCancelled && index == 0)
        if isCallCancelled {
          if run.hasSucceeded != nil, !pair.isFirstCancelled || !pair.isShared { continue }
          try isRight(
            await call.result.isCancellation, "a call that is cancelled throws a CancellationError")
        } else {
          try await expect(run, from: call)
        }
      }
      try await until { !store.isLoading }
    }

    private func until(_ isDone: () -> Bool) async throws {
      try isRight(
        await eventually(isDone), "nothing continues: \(server.requests) has been requested")
    }

    private struct Pair {
      var runs: [PageModel.Run]
      /// Whether both calls are for one run.
      var isShared: Bool
      /// Whether neither call waits for the other.
      var isSideBySide = false
      /// Whether both calls are cancelled.
      var isCancelled = false
      var isFirstCancelled = false
    }

    /// Waits until the server has got the requests of the model.
    private func untilRequested() async throws {
      try await until {
        server.requests.count >= model.world.requests.count
      }
    }

    private func disturb(
      _ disturbance: Disturbance, _ pair: inout Pair, _ calls: [Task<[Int], any Error>]
    ) async throws {
      switch disturbance {
      case .none: break
      case .write(let ids): write(ids)
      case .change(let change): perform(change)
      case .invalidate: invalidate()
      case .reset:
        reset()
        pair.isCancelled = true
      case .cancel:
        store.cancel()
        pair.isCancelled = true
      case .cancelFirst:
        calls[0].cancel()
        pair.isFirstCancelled = true
        try isRight(await calls[0].result.isCancellation, "a cancelled caller returns at once")
        guard !pair.isShared, pair.runs[1].pending == nil, pair.runs[1].hasSucceeded == nil
        else { return }
        model.begin(&pair.runs[1])
        try await untilRequested()
      }
    }

    /// Answers the fetches in flight, one after the other.
    private func finish(_ pair: inout Pair, _ isSecondFirst: Bool) async throws {
      if pair.isCancelled { return }
      var order = Array(pair.runs.indices)
      if pair.isSideBySide, isSecondFirst { order.reverse() }
      if pair.isFirstCancelled, !pair.isShared { order = [1] }
      for index in order {
        if pair.runs[index].pending == nil, pair.runs[index].hasSucceeded == nil {
          model.begin(&pair.runs[index])
          try await untilRequested()
        }
        while let (id, _) = pair.runs[index].pending {
          let count = server.waitingCount
          server.release(of: id, pair.runs[index].kind)
          model.answer(&pair.runs[index])
          let isDone = pair.runs[index].hasSucceeded != nil
          let active = pair.runs.indices.count { pair.runs[$0].hasSucceeded == nil }
          let removed = pair.isFirstCancelled && !pair.isShared ? 1 : 0
          if isDone {
            try await until { store.activeTasks.count <= active - removed }
          } else {
            try await untilRequested()
            try await until { server.waitingCount == count }
          }
        }
      }
    }

    private func check() throws {
      let present = Array(store.currentValue)
      try isRight(
        present == model.pages,
        "\(present.map(\.line)) are present, and not \(model.pages.map(\.line))")
      try isRight(Set(present.map(\.id)).count == present.count, "a page is present twice")
      try isRight(
        store.nextPageId == model.pages.last?.value.next
          && store.previousPageId == model.pages.first?.value.previous,
        "the pages beside are those of the last and the first page")
      try isRight((store.error != nil) == model.hasFailed, "the error is that of the last run")
      try isRight(
        store.valueLastUpdatedAt == nil || store.isInvalidated == model.isInvalidated,
        "it is \(model.isInvalidated ? "" : "not ")out of date")
      try isRight(
        server.requests == model.world.requests,
        "\(server.requests) was requested, and not \(model.world.requests)")
      try isRight(store.leaseCount == 0 && !store.isLoading, "a run is in flight")
      if subscription != nil {
        try isRight(
          notified.all.last?.elements == model.pages,
          "the subscriber was notified of the present pages")
      }
    }
  }
}

extension PaginatedPage<Int, PageEntry> {
  fileprivate var line: String { "\(id)v\(value.version)" }
}

extension PageModel.Run {
  fileprivate var kind: PaginatedRunKind {
    if known.isEmpty { return .initialPage }
    return switch call {
    case .next: .nextPage
    case .previous: .previousPage
    case .all: .allPages
    case .plain: .refetch
    }
  }
}

extension PaginatedPages<Int, PageEntry> {
  fileprivate var elements: [PaginatedPage<Int, PageEntry>] { Array(self) }
}
