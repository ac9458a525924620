@testable import Operation
import TestSupport
import Testing

@Suite struct PageModelTests {
  @Test("Pages of a server whose list changes between the fetches are what a plain list says")
  func schedules() async {
    await Schedules.each("Pages") { seed in
      try await Schedule(seed: seed).run()
    }
  }

  private enum Disturbance {
    case none, write([Int]), reset, cancel, leave, change(PageWorld.Change), invalidate
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
    private let heard = Recorder<Pages>()
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
      subscription = store.subscribe { [heard] event in
        if case .stateChanged(let state) = event { heard.append(state.currentValue) }
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
      case 7: return .leave
      case 8: return subscription == nil ? .invalidate : .none
      default: return .none
      }
    }

    /// Some of the pages that are there, and sometimes another one.
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

    /// Begins a call at once, so that its run is in the store, and can be cancelled, behind this.
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
      let before = heard.count
      let pages = model.pages
      model.begin(&run)
      while run.hasSucceeded == nil { model.answer(&run) }
      try await expect(run, from: start(call))
      guard subscription != nil else { return }
      // All that a run changes is shown at once.
      let shown = heard.all[before...].filter { $0.elements != pages }
      try isRight(
        shown.allSatisfy { $0.elements == model.pages }, "pages are shown one after the other")
    }

    private func expect(_ run: PageModel.Run, from call: Task<[Int], any Error>) async throws {
      switch await call.result {
      case .success(let ids):
        try isRight(
          run.hasSucceeded == true && ids == run.fetched.map(\.id),
          "\(run.call) gives \(ids), and not \(run.fetched.map(\.id))")
      case .failure(let error):
        try isRight(
          run.hasSucceeded == false && error is Failed || run.hasSucceeded == nil,
          "\(run.call) ends with \(error)")
      }
    }

    /// Two calls, of which none has ended when the second one comes, and what comes between.
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
        try await untilAsked()
        try await disturb(disturbance, &pair, calls)
        try await finish(&pair, isSecondFirst)
      }
      server.letGo()
      for (index, call) in calls.enumerated() {
        let run = pair.runs[pair.isShared ? 0 : index]
        let isGone = pair.isOver || (pair.hasFirstLeft && index == 0)
        if isGone {
          if run.hasSucceeded != nil, !pair.hasFirstLeft || !pair.isShared { continue }
          try isRight(await call.result.isCancellation, "a call that is over is cancelled")
        } else {
          try await expect(run, from: call)
        }
      }
      try await until { !store.isLoading }
    }

    private func until(_ isDone: () -> Bool) async throws {
      try isRight(
        await eventually(isDone), "nothing goes on: \(server.requests) has been asked for")
    }

    private struct Pair {
      var runs: [PageModel.Run]
      /// Whether both calls are for one run.
      var isShared: Bool
      /// Whether neither waits for the other.
      var isSideBySide = false
      /// Whether all has been cancelled.
      var isOver = false
      var hasFirstLeft = false
    }

    /// Waits until the server has been asked what the model says.
    private func untilAsked() async throws {
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
        pair.isOver = true
      case .cancel:
        store.cancel()
        pair.isOver = true
      case .leave:
        calls[0].cancel()
        pair.hasFirstLeft = true
        try isRight(await calls[0].result.isCancellation, "who leaves goes at once")
        guard !pair.isShared, pair.runs[1].pending == nil, pair.runs[1].hasSucceeded == nil
        else { return }
        model.begin(&pair.runs[1])
        try await untilAsked()
      }
    }

    /// Answers what is under way, one fetch after the other.
    private func finish(_ pair: inout Pair, _ isSecondFirst: Bool) async throws {
      if pair.isOver { return }
      var order = Array(pair.runs.indices)
      if pair.isSideBySide, isSecondFirst { order.reverse() }
      if pair.hasFirstLeft, !pair.isShared { order = [1] }
      for index in order {
        if pair.runs[index].pending == nil, pair.runs[index].hasSucceeded == nil {
          model.begin(&pair.runs[index])
          try await untilAsked()
        }
        while let (id, _) = pair.runs[index].pending {
          let count = server.waitingCount
          server.letGo(of: id, pair.runs[index].kind)
          model.answer(&pair.runs[index])
          let isDone = pair.runs[index].hasSucceeded != nil
          let left = pair.runs.indices.count { pair.runs[$0].hasSucceeded == nil }
          let gone = pair.hasFirstLeft && !pair.isShared ? 1 : 0
          if isDone {
            try await until { store.activeTasks.count <= left - gone }
          } else {
            try await untilAsked()
            try await until { server.waitingCount == count }
          }
        }
      }
    }

    private func check() throws {
      let there = Array(store.currentValue)
      try isRight(
        there == model.pages, "\(there.map(\.line)) is there, and not \(model.pages.map(\.line))")
      try isRight(Set(there.map(\.id)).count == there.count, "a page is there twice")
      try isRight(
        store.nextPageId == model.pages.last?.value.next
          && store.previousPageId == model.pages.first?.value.previous,
        "the pages beside are those of the last and the first page")
      try isRight((store.error != nil) == model.hasFailed, "the last run ended as it is shown")
      try isRight(
        store.valueLastUpdatedAt == nil || store.isInvalidated == model.isInvalidated,
        "it is \(model.isInvalidated ? "" : "not ")out of date")
      try isRight(
        server.requests == model.world.requests,
        "\(server.requests) was asked for, and not \(model.world.requests)")
      try isRight(store.leaseCount == 0 && !store.isLoading, "something is under way")
      if subscription != nil {
        try isRight(heard.all.last?.elements == model.pages, "what is there was told")
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
