import FoundationEssentials
import TestSupport
import Testing

@testable import Operation

/// A store leaves when nobody has used it for its time, or when there are too many unused ones and it
/// is the one that was used least recently; never while it is used. As long as one may leave there is
/// a timer for it that is not too late. What is found is what was inserted and has not left.
@Suite("StoreIndex, every sequence") struct StoreIndexExhaustiveTests {
  private enum Step {
    case insert(Int), ask(Int), use(Int), tellUse, clear(Int), advance, sweep, settle
  }

  private enum Rule: String { case time, whileUsed, limit }

  private final class Walk {
    private struct Item {
      let store: OpaqueOperationStore
      let type: RequestType
      /// Notes that a use begins or ends.
      let change: (_ isUsed: Bool) -> StoreUse.Change
      var isUsed = false
      var lastUse: Int

      init<State>(_ store: OperationStore<State>, type: RequestType, lastUse: Int) {
        self.store = OpaqueOperationStore(store)
        self.type = type
        self.lastUse = lastUse
        change = { store.use.change(isUsed: $0) }
      }
    }

    private let rule: Rule
    private var index: StoreIndex
    private let retention: OperationRetention
    private var now = 0
    private var items: [Int: Item] = [:]
    /// Everything that was ever used, the least recently used one first.
    private var order: [Int] = []
    private var untold: [(item: Int, change: StoreUse.Change)] = []
    private var timer: StoreIndex.Wake?
    private var verdicts: [StoreIndex.Verdict]?

    init(_ rule: Rule) {
      self.rule = rule
      index = StoreIndex(limit: rule == .limit ? 1 : nil)
      retention = rule == .whileUsed ? .whileUsed : .unusedFor(.seconds(60))
    }

    private func date(_ time: Int) -> Date { Date(timeIntervalSince1970: Double(time)) }

    func take(_ step: Step) throws -> Bool {
      guard try perform(step) else { return false }
      try check()
      return true
    }

    func perform(_ step: Step) throws -> Bool {
      switch step {
      case .insert(let item): try insert(item)
      case .ask(let item):
        guard let asked = items[item] else { return false }
        let found = index.ask(
          for: asked.type, at: Self.path(item), retention: nil, at: .init(date(now)))
        try mustHold(found?.base === asked.store.base, "the store of the request is found")
        noteUse(of: item)
      case .use(let item):
        guard items[item] != nil else { return false }
        use(item)
      case .tellUse:
        guard !untold.isEmpty else { return false }
        let (item, change) = untold.removeFirst()
        guard let store = items[item]?.store else { break }
        try leave(index.useChanged(of: store, change), isTimeUp: rule == .whileUsed)
      case .clear(let item):
        guard items[item] != nil else { return false }
        let removed = index.remove(at: Self.path(item), isPrefix: false)
        let there = items.keys.filter { Self.path($0) == Self.path(item) }
        try mustHold(removed.count == there.count, "all of a path are cleared")
        for item in there { items[item] = nil }
      case .advance: now += 30
      case .sweep: return sweep()
      case .settle:
        guard let verdicts = verdicts.take() else { return false }
        try leave(index.settle(verdicts), isTimeUp: true)
      }
      if let wake = index.nextWake(at: date(now)) { timer = wake }
      return true
    }

    /// The first two stand on one path, with requests of different types.
    static func path(_ item: Int) -> OperationPath { item < 2 ? ["a"] : ["b", item] }

    private func make(_ item: Int) -> Item {
      if item == 1 {
        let request = Mutation<Int, Int>(path: Self.path(item)) { number, _ in number }
        let store = OperationStore.detached(mutation: request)
        return Item(store, type: .init(of: request), lastUse: now)
      }
      let request = Query<Int, any Error>(path: Self.path(item)) { _ in item }
      let store = OperationStore.detached(query: request)
      return Item(store, type: .init(of: request), lastUse: now)
    }

    private func insert(_ item: Int) throws {
      let new = make(item)
      new.store.lastUse = .init(date(now))
      let isPathTaken = items.keys.contains { $0 != item && Self.path($0) == Self.path(item) }
      switch index.insert(new.store, retention: retention, deadline: date(now + 60)) {
      case .present(let present):
        try mustHold(items[item]?.store.base === present.base, "the one that is there stays")
        noteUse(of: item)
      case .clashed:
        try mustHold(isPathTaken && items[item] == nil, "another type is there")
        add(item, new)
      case .inserted(let left):
        try mustHold(!isPathTaken && items[item] == nil, "nothing is there")
        add(item, new)
        try leave(left, isTimeUp: false)
      }
    }

    private func add(_ item: Int, _ new: Item) {
      items[item] = new
      untold.removeAll { $0.item == item }
      noteUse(of: item)
    }

    private func noteUse(of item: Int) {
      items[item]?.lastUse = now
      order.removeAll { $0 == item }
      order.append(item)
    }

    /// A use begins or ends; the index hears of it later.
    private func use(_ item: Int) {
      guard let store = items[item]?.store, let wasUsed = items[item]?.isUsed else { return }
      items[item]?.isUsed = !wasUsed
      guard let change = items[item]?.change(!wasUsed) else { return }
      if wasUsed {
        store.lastUse = .init(date(now))
        noteUse(of: item)
      }
      untold.append((item, change))
    }

    /// The timer goes off: looks at what is due, as the client does.
    private func sweep() -> Bool {
      guard let wake = timer, verdicts == nil, wake.date <= date(now) else { return false }
      timer = nil
      verdicts = index.takeDue(at: date(now), generation: wake.generation).map { candidate in
        let mark = candidate.store.useMark
        let isUsed = items.values.contains { $0.store.base === candidate.store.base && $0.isUsed }
        if isUsed { return .stay(candidate.store, until: date(now + 60)) }
        let end = mark.lastUse.date.advanced(by: 60)
        return end <= date(now) ? .leave(candidate.store, mark) : .stay(candidate.store, until: end)
      }
      return true
    }

    private func leave(_ left: [OpaqueOperationStore], isTimeUp: Bool) throws {
      for store in left {
        guard let (item, entry) = items.first(where: { $0.value.store.base === store.base }) else {
          try mustHold(false, "it leaves only if it is there")
          continue
        }
        try mustHold(!entry.isUsed, "\(item) leaves while it is used")
        if isTimeUp {
          try mustHold(rule != .time || now - entry.lastUse >= 60, "\(item) leaves too early")
        } else {
          try mustHold(rule == .limit, "\(item) leaves for no reason")
          let earlier = order.prefix { $0 != item }.filter { items[$0]?.isUsed == false }
          try mustHold(
            earlier.allSatisfy { other in untold.contains { $0.item == other } || other == 1 },
            "\(item) leaves before \(earlier)")
        }
        items[item] = nil
      }
    }

    private func check() throws {
      let isOnOnePath = items[0] != nil && items[1] != nil
      try mustHold(
        index.count == items.count - (isOnOnePath ? 1 : 0), "\(items.keys) are there")
      let found = index.stores(matching: []).map { ObjectIdentifier($0.base) }
      let there = items.values.map { ObjectIdentifier($0.store.base) }
      try mustHold(Set(found) == Set(there) && found.count == there.count, "what is there is found")
      for item in items.values {
        let store = index.store(at: item.store.path, for: item.type)
        try mustHold(store?.base === item.store.base, "what is there is found by its type")
        try mustHold(
          verdicts != nil || item.isUsed
            || timer.map { $0.date <= date(item.lastUse + 60) } == true,
          "there is a timer for what may leave")
      }
      if items.isEmpty {
        try mustHold(index.nodeCount == 0 && index.deadlines.count == 0, "nothing is left")
      }
      let unused = items.filter { !$0.value.isUsed && $0.key != 1 }
      if rule == .limit, untold.isEmpty {
        try mustHold(unused.count <= 1, "\(unused.keys) are too many")
      }
    }
  }

  private static func events(_ items: [Int]) -> [Step] {
    items.flatMap { [Step.insert($0), .ask($0), .use($0)] }
      + [.tellUse, .clear(items[0]), .advance, .sweep, .settle]
  }

  private func everySequence(_ name: String, _ rule: Rule, of items: [Int], length: Int) {
    exhaust(
      "StoreIndex, \(name)", events: Self.events(items), length: length, making: { Walk(rule) },
      again: { walk, step in _ = try walk.perform(step) },
      step: { walk, step in try walk.take(step) })
  }

  @Test("Stores leave in their time, and never while they are used") func time() {
    everySequence("time", .time, of: [0], length: 6)
    everySequence("clash", .time, of: [0, 1], length: 5)
  }

  @Test("Stores that go with their use leave when it has ended") func whileUsed() {
    everySequence("while used", .whileUsed, of: [0], length: 6)
  }

  @Test("Of too many unused stores the least recently used one leaves") func limit() {
    everySequence("limit", .limit, of: [2, 3], length: 5)
  }

  private enum UnusedStep { case append(Int), touch(Int), remove(Int), popFirst }

  private struct Unused {
    final class Key {}
    let keys = (0..<3).map { _ in Key() }
    private var unused = UnusedStores()
    private var list: [(item: Int, version: Int)] = []
    private var version = 0

    mutating func take(_ step: UnusedStep) throws -> Bool {
      switch step {
      case .append(let item):
        version += 1
        unused.append(ObjectIdentifier(keys[item]), at: [item], version: version)
        list.removeAll { $0.item == item }
        list.append((item, version))
      case .touch(let item):
        unused.touch(ObjectIdentifier(keys[item]))
        guard let index = list.firstIndex(where: { $0.item == item }) else { break }
        list.append(list.remove(at: index))
      case .remove(let item):
        unused.remove(ObjectIdentifier(keys[item]))
        list.removeAll { $0.item == item }
      case .popFirst:
        let expected = list.isEmpty ? nil : list.removeFirst()
        let first = unused.popFirst()
        try mustHold(
          first?.0 == expected.map { ObjectIdentifier(keys[$0.item]) }
            && first?.1 == expected.map { [$0.item] } && first?.version == expected?.version,
          "the least recently used one is \(expected.map { "\($0.item)" } ?? "nobody")")
      }
      try mustHold(unused.count == list.count, "it counts")
      return true
    }
  }

  @Test("The least recently used store comes first, whatever was touched or removed")
  func unusedStores() {
    let events = (0..<3).flatMap { [UnusedStep.append($0), .touch($0), .remove($0)] }
    exhaust("UnusedStores", events: events + [.popFirst], length: 5, from: Unused()) {
      walk, step in try walk.take(step)
    }
  }
}
