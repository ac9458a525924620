import TestSupport
import Testing

@testable import Operation

/// When stores leave, in the plainest words: a list of the stores by their last use, the least
/// recently used one first.
private struct RetentionModel {
  struct Store {
    let id: Int
    /// How long it stays after its last use; nil without an end.
    var patience: Int?
    var lastUse: Int
    var uses = 0
  }

  let limit: Int?
  var now = 0
  private(set) var stores: [Store] = []

  init(limit: Int?) { self.limit = limit }

  private func index(_ id: Int) -> Int? { stores.firstIndex { $0.id == id } }

  /// It has been used now.
  private mutating func touch(_ index: Int) {
    var store = stores.remove(at: index)
    store.lastUse = now
    stores.append(store)
  }

  /// Somebody asks for a store, to which the longest of all retentions applies.
  mutating func ask(for id: Int, patience: Int?) {
    guard let index = index(id) else {
      stores.append(Store(id: id, patience: patience, lastUse: now))
      return drop(for: id, isNew: true)
    }
    let present = stores[index].patience
    stores[index].patience = present.flatMap { one in patience.map { max(one, $0) } }
    touch(index)
  }

  mutating func begin(_ id: Int) {
    if let index = index(id) { stores[index].uses += 1 }
  }

  mutating func end(_ id: Int) {
    guard let index = index(id) else { return }
    stores[index].uses -= 1
    guard stores[index].uses == 0 else { return }
    if stores[index].patience == 0 {
      stores.remove(at: index)
    } else {
      touch(index)
      drop(for: id, isNew: false)
    }
  }

  mutating func clear(_ id: Int) { stores.removeAll { $0.id == id } }

  mutating func evict() { stores.removeAll { $0.uses == 0 && $0.patience != nil } }

  mutating func advance(by seconds: Int) {
    now += seconds
    stores.removeAll { store in
      guard store.uses == 0, let patience = store.patience else { return false }
      // One that goes with its use, and was not used yet, stays a minute.
      return now - store.lastUse >= (patience == 0 ? 60 : patience)
    }
  }

  /// The least recently used ones leave for one that counts, where there are too many; a new one
  /// stays itself until the next one comes.
  private mutating func drop(for id: Int, isNew: Bool) {
    guard let limit, index(id).map({ stores[$0].patience != nil }) == true else { return }
    let unused = stores.filter { $0.uses == 0 && $0.patience != nil }
    let most = isNew ? max(limit, 1) : limit
    let leaving = unused.prefix(max(unused.count - most, 0)).map(\.id)
    stores.removeAll { leaving.contains($0.id) }
  }
}

@Suite struct RetentionModelTests {
  private enum Step {
    case ask(Int), fetch(Int), subscribe(Int), unsubscribe(Int), schedule(Int), drop(Int)
    case edit(Int), endEdit(Int), lookUp(Int), clear(Int), evict, advance(Int)
  }

  @Test("Stores that are used at random leave when a plain list of last uses says so")
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
    private let patience: Int?
    private let patiences: [Int?]
    private var model: RetentionModel
    private var random: SplitMix
    private var held: [Int: OperationSubscription] = [:]
    private var tasks: [Int: OperationTask<Int, any Error>] = [:]
    private var edits: [Int: (store: Store, id: OperationTaskID)] = [:]
    private var trace: [Step] = []

    init(seed: UInt64) {
      random = SplitMix(seed: seed)
      let limit = Bool.random(using: &random) ? Int.random(in: 0...3, using: &random) : nil
      patience = [20, 20, 35, 0, nil].randomElement(using: &random) ?? 20
      // Each request may have a retention of its own, which replaces that of the client.
      let clients = patience
      patiences = (0..<5).map { [random] id in
        var random = random
        for _ in 0...id { _ = random.next() }
        return Int.random(in: 0..<3, using: &random) > 0
          ? clients : [0, 7, 50, nil].randomElement(using: &random) ?? clients
      }
      var retention = Self.retention(patience)
      if let limit { retention = retention.limited(to: limit) }
      client = OperationClient(
        defaults: .quiet(), clock: clock, retention: retention)
      model = RetentionModel(limit: limit)
    }

    private static func retention(_ patience: Int?) -> OperationRetention {
      patience.map { .unusedFor(.seconds($0)) } ?? .forever
    }

    private func ask(_ id: Int) -> Store {
      model.ask(for: id, patience: patiences[id])
      let query = Query<Int, any Error>(path: ["number", id]) { _ in id }
      if patiences[id] == patience { return client.store(for: query) }
      return client.store(for: query.retained(Self.retention(patiences[id])))
    }

    func run() async throws {
      for _ in 0..<Int.random(in: 8...30, using: &random) {
        let step = randomStep()
        trace.append(step)
        try await take(step)
        let there = Set((0..<5).filter { client.store(with: ["number", $0]) != nil })
        let expected = Set(model.stores.map(\.id))
        try mustHold(
          there == expected,
          """
          \(there) are there at \(model.now), and not \(expected); at most \(name(model.limit)) unused, \
          which stay \(patiences.map(name)), others \(name(patience)): \(trace.listed)
          """)
      }
      try await finish()
    }

    private func name(_ number: Int?) -> String { number.map { "\($0)" } ?? "ever" }

    private func randomStep() -> Step {
      let id = Int.random(in: 0..<5, using: &random)
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<3: return .ask(id)
      case 3..<5: return .fetch(id)
      case 5..<8: return held[id] == nil ? .subscribe(id) : .unsubscribe(id)
      case 8: return tasks[id] == nil ? .schedule(id) : .drop(id)
      case 9..<11: return edits[id] == nil ? .edit(id) : .endEdit(id)
      case 11: return .lookUp(id)
      case 12: return .clear(id)
      case 13: return Int.random(in: 0..<3, using: &random) == 0 ? .evict : .ask(id)
      default: return .advance(Int.random(in: 1...15, using: &random))
      }
    }

    private func take(_ step: Step) async throws {
      switch step {
      case .ask(let id): _ = ask(id)
      case .fetch(let id):
        let store = ask(id)
        model.begin(id)
        try await store.fetch()
        // A run that was scheduled is the same one.
        if tasks.removeValue(forKey: id) != nil { model.end(id) }
        model.end(id)
      case .subscribe(let id):
        held[id] = ask(id).subscribe { _ in }
        model.begin(id)
      case .schedule(let id):
        tasks[id] = ask(id).runTask()
        model.begin(id)
      case .edit(let id):
        let store = ask(id)
        edits[id] = (store, store.beginEdit { $0 = -1 })
        model.begin(id)
      case .unsubscribe, .drop, .endEdit: release(step)
      case .lookUp(let id):
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

    /// What holds the store that is cleared lets go of it, and touches no new one.
    private func clear(_ id: Int) {
      client.clearStore(with: ["number", id])
      model.clear(id)
      held.removeValue(forKey: id)?.cancel()
      tasks[id] = nil
      if let (store, edit) = edits.removeValue(forKey: id) { store.endEdit(edit, isSuccess: false) }
    }

    /// When all have been let go and their time is over, nothing is left of them.
    private func finish() async throws {
      for id in 0..<5 { clear(id) }
      await clock.advance(by: .seconds(100))
      let (nodes, deadlines) = client.read { ($0.nodeCount, $0.deadlines.count) }
      try mustHold(nodes == 0 && deadlines == 0, "nothing is left: \(trace.listed)")
    }
  }
}
