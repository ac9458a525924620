import TestSupport
import Testing

@testable import Operation

/// A store is evicted when it has not been used for its time, or when there are too many unused stores
/// and it is the least recently used one; never while it is in use. As long as a store may be evicted,
/// there is a timer that is not too late. The stores that are found are those that were inserted and
/// not removed. An evicted store is found until it is released, and retained again when it is used.
@Suite("StoreIndex, every sequence") struct StoreIndexExhaustiveTests {
  private enum Step {
    case insert(Int), lookUp(Int), use(Int), record, report, clear(Int), advance, fire
    case release(Int), removeReleased
  }

  private enum Rule: String { case time, whileUsed, limit }

  private final class Walk {
    private struct Item {
      let store: OpaqueOperationStore
      let lookup: () -> StoreIndex.Lookup
      /// Begins or ends a use.
      let change: (_ isUsed: Bool) -> StoreUse.Change
      /// Records the end of a use.
      let record: (StoreUse.Change, Duration) -> Void
      /// Whether the store reports its uses.
      let isWatched: () -> Bool
      var isUsed = false
      /// An end of a use that is not recorded yet.
      var end: StoreUse.Change?
      var lastUse: Int

      var isInUse: Bool { isUsed || end != nil }

      init<State>(
        _ store: OperationStore<State>, lookup: @autoclosure @escaping () -> StoreIndex.Lookup,
        lastUse: Int
      ) {
        self.store = OpaqueOperationStore(store)
        self.lookup = lookup
        self.lastUse = lastUse
        change = { store.use.change(isUsed: $0) }
        record = { store.use.noteEnd($0, at: $1) }
        isWatched = { store.use.isWatched }
      }
    }

    private let rule: Rule
    private let recordsAtOnce: Bool
    private var index: StoreIndex
    private let retention: OperationRetention
    private var now = 0
    private var items: [Int: Item] = [:]
    /// Evicted items that are still referenced.
    private var evicted: [Int: Item] = [:]
    /// What the released stores have not removed from the index yet.
    private var released: [(id: ObjectIdentifier, item: Int)] = []
    /// The items in the order of their last use, the least recently used one first.
    private var order: [Int] = []
    private var unreported: [(item: Int, change: StoreUse.Change)] = []
    private var timer: StoreIndex.Timer?

    init(_ rule: Rule, recordsAtOnce: Bool) {
      self.rule = rule
      self.recordsAtOnce = recordsAtOnce
      index = StoreIndex(limit: rule == .limit ? 1 : nil)
      retention = rule == .whileUsed ? .whileUsed : .unusedFor(.seconds(60))
    }

    private func time(_ seconds: Int) -> Duration { .seconds(seconds) }

    func take(_ step: Step) throws -> Bool {
      guard try perform(step) else { return false }
      try check()
      return true
    }

    func perform(_ step: Step) throws -> Bool {
      switch step {
      case .insert(let item): try insert(item)
      case .lookUp(let item):
        guard let expected = items[item] ?? evicted[item] else { return false }
        let found = index.readmit(expected.lookup(), at: time(now))
        try mustHold(found?.store.id == expected.store.id, "the store of the request is found")
        readmitted(item)
        noteUse(of: item)
        try noteEviction(of: found?.evicted ?? [], isTimeOver: false)
      case .use(let item):
        guard items[item] != nil || evicted[item] != nil else { return false }
        use(item)
      case .record:
        let all = items.merging(evicted) { item, _ in item }
        guard let item = all.keys.sorted().first(where: { all[$0]?.end != nil }) else {
          return false
        }
        record(item)
      case .report:
        guard !unreported.isEmpty else { return false }
        let (item, change) = unreported.removeFirst()
        guard let store = (items[item] ?? evicted[item])?.store else { break }
        let use = index.useChanged(of: store, change, at: time(now))
        try mustHold(
          !use.isReadmitted || evicted[item] != nil, "only an evicted store is retained again")
        if use.isReadmitted {
          readmitted(item)
          noteUse(of: item)
        }
        try noteEviction(of: use.evicted, isTimeOver: rule == .whileUsed)
      case .clear(let item):
        guard items[item] != nil || evicted[item] != nil else { return false }
        let removed = index.remove(index.stores(at: Self.path(item)))
        let cleared = items.keys.filter { Self.path($0) == Self.path(item) }
        try mustHold(removed.count == cleared.count, "all stores of a path are cleared")
        for item in cleared { items[item] = nil }
        for other in evicted.keys where Self.path(other) == Self.path(item) {
          evicted[other] = nil
        }
      case .release(let item):
        guard let id = evicted.removeValue(forKey: item)?.store.id else { return false }
        unreported.removeAll { $0.item == item }
        released.append((id, item))
      case .removeReleased:
        guard !released.isEmpty else { return false }
        let (id, item) = released.removeFirst()
        index.remove(id, at: Self.path(item))
      case .advance: now += 30
      case .fire:
        guard let fired = timer, fired.time <= time(now) else { return false }
        timer = nil
        try noteEviction(
          of: index.evictDue(at: time(now), fired.place), isTimeOver: true)
      }
      if let next = index.nextTimer(at: time(now)) { timer = next.new }
      return true
    }

    /// The first two are on one path, with requests of different types.
    static func path(_ item: Int) -> OperationPath { item < 2 ? ["a"] : ["b", item] }

    private func make(_ item: Int) -> Item {
      // Not `self`, which stores the item.
      let retention = retention
      if item == 1 {
        let request = Mutation<Int, Int>(path: Self.path(item)) { number, _ in number }
        let store = OperationStore.detached(mutation: request)
        return Item(store, lookup: .init(of: request, default: retention), lastUse: now)
      }
      let request = Query<Int, any Error>(path: Self.path(item)) { _ in item }
      let store = OperationStore.detached(query: request)
      return Item(store, lookup: .init(of: request, default: retention), lastUse: now)
    }

    private func insert(_ item: Int) throws {
      let new = make(item)
      let present = items[item] ?? evicted[item]
      let others = Array(items.keys) + evicted.keys + released.map(\.item)
      let isPathTaken = others.contains { $0 != item && Self.path($0) == Self.path(item) }
      let use = index.insert(new.store, for: new.lookup(), at: time(now))
      if use.store.id != new.store.id {
        try mustHold(present?.store.id == use.store.id, "the present store is kept")
        readmitted(item)
        noteUse(of: item)
        try noteEviction(of: use.evicted, isTimeOver: false)
      } else if use.clashing != nil {
        try mustHold(isPathTaken && present == nil, "a store of another type is present")
        add(item, new)
      } else {
        try mustHold(!isPathTaken && present == nil, "no store is present")
        add(item, new)
        try noteEviction(of: use.evicted, isTimeOver: false)
      }
    }

    private func readmitted(_ item: Int) {
      if let store = evicted.removeValue(forKey: item) { items[item] = store }
    }

    private func change(_ item: Int, _ change: (inout Item) -> Void) {
      if var changed = items[item] {
        change(&changed)
        items[item] = changed
      } else if var changed = evicted[item] {
        change(&changed)
        evicted[item] = changed
      }
    }

    private func add(_ item: Int, _ new: Item) {
      released.removeAll { $0.item == item }
      items[item] = new
      unreported.removeAll { $0.item == item }
      noteUse(of: item)
    }

    private func noteUse(of item: Int) {
      change(item) { $0.lastUse = now }
      order.removeAll { $0 == item }
      order.append(item)
    }

    /// Begins or ends a use, which is reported later.
    private func use(_ item: Int) {
      guard let used = items[item] ?? evicted[item] else { return }
      let use = used.change(!used.isUsed)
      change(item) { $0.isUsed = !used.isUsed }
      guard used.isUsed else { return report(use, of: item) }
      change(item) { $0.end = use }
      if recordsAtOnce { record(item) }
    }

    private func report(_ change: StoreUse.Change, of item: Int) {
      if (items[item] ?? evicted[item])?.isWatched() == true { unreported.append((item, change)) }
    }

    private func record(_ item: Int) {
      guard let used = items[item] ?? evicted[item], let end = used.end else { return }
      change(item) { $0.end = nil }
      used.record(end, time(now))
      noteUse(of: item)
      report(end, of: item)
    }

    /// Checks stores that the index has evicted.
    private func noteEviction(of stores: [OpaqueOperationStore], isTimeOver: Bool) throws {
      for store in stores {
        guard let (item, entry) = items.first(where: { $0.value.store.id == store.id }) else {
          try mustHold(false, "only a present store is evicted")
          continue
        }
        try mustHold(!entry.isUsed, "\(item) is evicted while it is in use")
        if isTimeOver {
          try mustHold(
            rule != .time || !entry.isInUse && now - entry.lastUse >= 60,
            "\(item) is evicted too early")
        } else {
          try mustHold(rule == .limit, "\(item) is evicted for no reason")
          let earlier = order.prefix { $0 != item }.filter { items[$0]?.isUsed == false }
          try mustHold(
            earlier.allSatisfy { other in
              unreported.contains { $0.item == other } || other == 1
            }, "\(item) is evicted before \(earlier)")
        }
        items[item] = nil
        evicted[item] = entry
      }
    }

    private func check() throws {
      let all = Array(items.keys) + evicted.keys + released.map(\.item)
      try mustHold(
        index.entries.count == Set(all.map(Self.path)).count, "\(all) are in the index")
      var found: [ObjectIdentifier] = []
      index.entries.tree(matching: []).forEach { $0.forEachStore { found.append($0.id) } }
      let present = (Array(items.values) + evicted.values).map(\.store.id)
      for (item, store) in evicted {
        try mustHold(!index.isRetained(store.store), "an evicted store is not retained")
        try mustHold(
          !store.isUsed || unreported.contains { $0.item == item },
          "the use of an evicted store is reported")
      }
      try mustHold(
        Set(found) == Set(present) && found.count == present.count, "all present stores are found")
      for (number, item) in items {
        let store = index.store(at: item.store.path, for: item.lookup().type)
        try mustHold(store?.id == item.store.id, "a present store is found by its type")
        try mustHold(
          item.isInUse || unreported.contains { $0.item == number }
            || timer.map { $0.time <= time(item.lastUse + 60) } == true,
          "there is a timer for a store that may be evicted")
      }
      if all.isEmpty {
        try mustHold(index.entries.nodeCount == 0 && index.deadlines.count == 0, "nothing is left")
      }
      let unused = items.filter { !$0.value.isUsed && $0.key != 1 }
      if rule == .limit, unreported.isEmpty {
        try mustHold(unused.count <= 1, "\(unused.keys) are too many")
      }
    }
  }

  private func everySequence(
    _ name: String, _ rule: Rule, of items: [Int], length: Int, recordsAtOnce: Bool = true
  ) {
    var events = items.flatMap { [Step.insert($0), .lookUp($0), .use($0), .release($0)] }
    events += [.clear(items[0]), .advance, .fire]
    // The shortest sequences do not reach these steps.
    if name != "clash" { events += [.report, .removeReleased] }
    if !recordsAtOnce { events.append(.record) }
    exhaust(
      "StoreIndex, \(name)", events: events, length: length,
      making: { Walk(rule, recordsAtOnce: recordsAtOnce) },
      again: { walk, step in _ = try walk.perform(step) },
      step: { walk, step in try walk.take(step) })
  }

  @Test("A store is evicted when its time is over, and never while it is in use") func time() {
    everySequence("time", .time, of: [0], length: 6)
    everySequence("late records", .time, of: [0], length: 6, recordsAtOnce: false)
    everySequence("clash", .time, of: [0, 1], length: 5)
  }

  @Test("A store that is retained while it is used is evicted when its use ends")
  func whileUsed() {
    everySequence("while used", .whileUsed, of: [0], length: 6)
  }

  @Test("Of too many unused stores the least recently used one is evicted") func limit() {
    everySequence("limit", .limit, of: [2, 3], length: 5)
  }
}
