import TestSupport
import Testing

@testable import Operation

/// A model of retention: a list of the stores by their last use, the least recently used one first.
private struct RetentionModel {
  struct Store {
    let id: Int
    /// How many seconds after its last use it is evicted; nil for never.
    var lifetime: Int?
    var lastUse: Int
    var uses = 0
  }

  let limit: Int?
  var now = 0
  private(set) var stores: [Store] = []

  init(limit: Int?) { self.limit = limit }

  private func index(_ id: Int) -> Int? { stores.firstIndex { $0.id == id } }

  /// Records a use that ends now.
  private mutating func touch(_ index: Int) {
    var store = stores.remove(at: index)
    store.lastUse = now
    stores.append(store)
  }

  /// Looks a store up, creating it if needed. The longest of all retentions applies.
  mutating func lookUp(_ id: Int, lifetime: Int?) {
    guard let index = index(id) else {
      stores.append(Store(id: id, lifetime: lifetime, lastUse: now))
      return drop(for: id, isNew: true)
    }
    let present = stores[index].lifetime
    stores[index].lifetime = present.flatMap { one in lifetime.map { max(one, $0) } }
    touch(index)
  }

  mutating func begin(_ id: Int) {
    if let index = index(id) { stores[index].uses += 1 }
  }

  mutating func end(_ id: Int) {
    guard let index = index(id) else { return }
    stores[index].uses -= 1
    guard stores[index].uses == 0 else { return }
    if stores[index].lifetime == 0 {
      stores.remove(at: index)
    } else {
      touch(index)
      drop(for: id, isNew: false)
    }
  }

  mutating func clear(_ id: Int) { stores.removeAll { $0.id == id } }

  mutating func evict() { stores.removeAll { $0.uses == 0 && $0.lifetime != nil } }

  mutating func advance(by seconds: Int) {
    now += seconds
    stores.removeAll { store in
      guard store.uses == 0, let lifetime = store.lifetime else { return false }
      // One that is evicted with its last use, and was never used, is retained for a minute.
      return now - store.lastUse >= (lifetime == 0 ? 60 : lifetime)
    }
  }

  /// Evicts the least recently used stores if a store that counts exceeds the limit. A new store is
  /// retained until the next one is created.
  private mutating func drop(for id: Int, isNew: Bool) {
    guard let limit, index(id).map({ stores[$0].lifetime != nil }) == true else { return }
    let unused = stores.filter { $0.uses == 0 && $0.lifetime != nil }
    let most = isNew ? max(limit, 1) : limit
    let evicted = unused.prefix(max(unused.count - most, 0)).map(\.id)
    stores.removeAll { evicted.contains($0.id) }
  }
}

@Suite struct RetentionModelTests {
  private enum Step {
    case lookUp(Int), fetch(Int), subscribe(Int), unsubscribe(Int), schedule(Int), drop(Int)
    case edit(Int), endEdit(Int), find(Int), clear(Int), evict, advance(Int)
  }

  @Test("Stores that are used at random are evicted as by a list of their last uses")
  func schedules() async {
    await Schedules.each("Retention") { seed in
      try await Schedule(seed: seed).run()
    }
  }

  /// One client beside the model.
  private final class Schedule {
    private typealias Store = OperationStore<QueryState<Int, any Error>>

    private let clock = ManualClock()
    private let client: OperationClient
    private let lifetime: Int?
    private let lifetimes: [Int?]
    private var model: RetentionModel
    private var random: SplitMix
    private var held: [Int: OperationSubscription] = [:]
    private var tasks: [Int: OperationTask<Int, any Error>] = [:]
    private var edits: [Int: (store: Store, id: OperationTaskID)] = [:]
    private var trace: [Step] = []

    init(seed: UInt64) {
      random = SplitMix(seed: seed)
      let limit = Bool.random(using: &random) ? Int.random(in: 0...3, using: &random) : nil
      lifetime = [20, 20, 35, 0, nil].randomElement(using: &random) ?? 20
      // Each request may have a retention of its own, which replaces that of the client.
      let clients = lifetime
      lifetimes = (0..<5).map { [random] id in
        var random = random
        for _ in 0...id { _ = random.next() }
        return Int.random(in: 0..<3, using: &random) > 0
          ? clients : [0, 7, 50, nil].randomElement(using: &random) ?? clients
      }
      var retention = Self.retention(lifetime)
      if let limit { retention = retention.limited(to: limit) }
      client = OperationClient(
        defaults: .quiet(), clock: clock, retention: retention)
      model = RetentionModel(limit: limit)
    }

    private static func retention(_ lifetime: Int?) -> OperationRetention {
      lifetime.map { .unusedFor(.seconds($0)) } ?? .forever
    }

    private func lookUp(_ id: Int) -> Store {
      model.lookUp(id, lifetime: lifetimes[id])
      let query = Query<Int, any Error>(path: ["number", id]) { _ in id }
      if lifetimes[id] == lifetime { return client.store(for: query) }
      return client.store(for: query.retained(Self.retention(lifetimes[id])))
    }

    func run() async throws {
      for _ in 0..<Int.random(in: 8...30, using: &random) {
        let step = randomStep()
        trace.append(step)
        try await take(step)
        let present = Set((0..<5).filter { client.retains(["number", $0]) })
        let expected = Set(model.stores.map(\.id))
        try mustHold(
          present == expected,
          """
          \(present) are present at \(model.now), and not \(expected); at most \(name(model.limit)) \
          unused, retained for \(lifetimes.map(name)), others \(name(lifetime)): \(trace.listed)
          """)
      }
      try await finish()
    }

    private func name(_ number: Int?) -> String { number.map { "\($0)" } ?? "ever" }

    private func randomStep() -> Step {
      let id = Int.random(in: 0..<5, using: &random)
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<3: return .lookUp(id)
      case 3..<5: return .fetch(id)
      case 5..<8: return held[id] == nil ? .subscribe(id) : .unsubscribe(id)
      case 8: return tasks[id] == nil ? .schedule(id) : .drop(id)
      case 9..<11: return edits[id] == nil ? .edit(id) : .endEdit(id)
      case 11: return .find(id)
      case 12: return .clear(id)
      case 13: return Int.random(in: 0..<3, using: &random) == 0 ? .evict : .lookUp(id)
      default: return .advance(Int.random(in: 1...15, using: &random))
      }
    }

    private func take(_ step: Step) async throws {
      switch step {
      case .lookUp(let id): _ = lookUp(id)
      case .fetch(let id):
        let store = lookUp(id)
        model.begin(id)
        try await store.fetch()
        // It starts the run that was scheduled.
        if tasks.removeValue(forKey: id) != nil { model.end(id) }
        model.end(id)
      case .subscribe(let id):
        held[id] = lookUp(id).subscribe { _ in }
        model.begin(id)
      case .schedule(let id):
        tasks[id] = lookUp(id).runTask()
        model.begin(id)
      case .edit(let id):
        let store = lookUp(id)
        edits[id] = (store, store.beginEdit { $0 = -1 })
        model.begin(id)
      case .unsubscribe, .drop, .endEdit: release(step)
      case .find(let id):
        _ = client.store(with: ["number", id])
        _ = client.stores(matching: [])
      case .clear(let id): clear(id)
      case .evict:
        client.evictUnused()
        model.evict()
      case .advance(let seconds):
        await clock.advance(by: .seconds(seconds))
        model.advance(by: seconds)
      }
    }

    private func release(_ step: Step) {
      switch step {
      case .unsubscribe(let id):
        held.removeValue(forKey: id)?.cancel()
        model.end(id)
      case .drop(let id):
        tasks[id] = nil
        model.end(id)
      case .endEdit(let id):
        if let (store, edit) = edits.removeValue(forKey: id) {
          store.endEdit(edit, isSuccess: Bool.random(using: &random))
        }
        model.end(id)
      default: break
      }
    }

    /// Clears a store, and releases what holds it, which does not affect a new store on the path.
    private func clear(_ id: Int) {
      client.clearStore(with: ["number", id])
      model.clear(id)
      held.removeValue(forKey: id)?.cancel()
      tasks[id] = nil
      if let (store, edit) = edits.removeValue(forKey: id) { store.endEdit(edit, isSuccess: false) }
    }

    /// Clears all stores, and checks that nothing is left of them.
    private func finish() async throws {
      for id in 0..<5 { clear(id) }
      await clock.advance(by: .seconds(100))
      let (nodes, deadlines) = client.read { ($0.entries.nodeCount, $0.deadlines.count) }
      try mustHold(nodes == 0 && deadlines == 0, "nothing is left: \(trace.listed)")
    }
  }
}
