import Operation
import Testing

/// Identifiers and scopes that are not equal to themselves.
@Suite("Bad input: identifiers", .timeLimit(.minutes(5))) struct BadIdentityTests {
  private struct Item: Identifiable, Sendable, Equatable {
    let id: Double
    var value = 0
  }

  private typealias Items = IdentifiedArrayOf<Item>

  /// Returns an array with one identifier that is not equal to itself. Long arrays have a table.
  private static func items(_ count: Int) -> Items {
    Items((0..<count).map { Item(id: $0 == 1 ? .nan : Double($0), value: $0) })
  }

  private static func row(
    _ entry: String, _ outcome: String, _ change: @escaping @Sendable (inout Items) -> Void
  ) -> [BadInput] {
    [3, 40].map { count in
      BadInput("IdentifiedArray.\(entry)", "nan among \(count)", outcome) {
        var items = items(count)
        change(&items)
        let difference = items.count - count
        // The other elements are found at their positions after any change.
        for (index, item) in items.enumerated() where !item.id.isNaN {
          #expect(items.index(id: item.id) == index)
        }
        return "\(difference) more, \(items.filter(\.id.isNaN).map(\.value))"
      }
    }
  }

  private static let arrays: [BadInput] =
    row("index(id:)", "0 more, [1]") { #expect($0.index(id: .nan) == nil) }
    + row("subscript(id:)", "0 more, [1]") { #expect($0[id: .nan] == nil) }
    + row("subscript(id:), set", "2 more, [1, 8, 9]") {
      $0[id: .nan] = Item(id: .nan, value: 8)
      $0[id: .nan] = Item(id: .nan, value: 9)
      $0[id: .nan] = nil
    }
    + row("append(_:)", "2 more, [1, 8, 9]") {
      $0.append(Item(id: .nan, value: 8))
      $0.append(Item(id: .nan, value: 9))
    }
    + row("append(contentsOf:)", "2 more, [1, 8, 9]") {
      $0.append(contentsOf: [Item(id: .nan, value: 8), Item(id: .nan, value: 9)])
    }
    + row("insert(_:at:)", "2 more, [9, 8, 1]") {
      $0.insert(Item(id: .nan, value: 8), at: 0)
      $0.insert(Item(id: .nan, value: 9), at: 0)
    }
    + row("remove(id:)", "0 more, [1]") { #expect($0.remove(id: .nan) == nil) }
    + row("remove(at:)", "-1 more, []") { #expect($0.remove(at: 1).value == 1) }
    + row("subscript(position:), set", "0 more, [8, 9]") {
      $0[1] = Item(id: .nan, value: 8)
      $0[2] = Item(id: .nan, value: 9)
    }
    + row("removeFirst(_:)", "-2 more, []") { $0.removeFirst(2) }
    + row("removeAll(where:)", "-1 more, []") { $0.removeAll { $0.id.isNaN } }
    + row("map(_:)", "0 more, [2]") { $0 = $0.map { Item(id: $0.id, value: 2 * $0.value) } }

  @Test(
    "An element whose identifier is not equal to itself has a position, and affects no other one",
    arguments: arrays)
  func element(row: BadInput) async throws {
    try await row.check()
  }

  @Test("Thousands of elements with unequal identifiers are inserted and removed like others")
  func manyElements() {
    var items = Items()
    for number in 0..<2_000 { items.append(Item(id: .nan, value: number)) }
    for _ in 0..<200 { items.insert(Item(id: .nan), at: items.count / 2) }
    #expect(items.count == 2_200)
    for _ in 0..<2_200 { items.remove(at: items.count - 1) }
    #expect(items.isEmpty)
  }

  private typealias Feed = Paginated<Double, Int>

  /// A store of the pages 0, 1, 2 …, unless `next` and `previous` return other identifiers.
  private static func feed(
    initial: Double = 0, next: @escaping @Sendable (Double) -> Double? = { $0 + 1 },
    previous: @escaping @Sendable (Double) -> Double? = { _ in nil }
  ) -> OperationStore<PaginatedState<Double, Int, any Error>> {
    let request = Feed(
      path: ["feed", 1], initialPageId: initial, nextPageId: { page, _ in next(page.id) },
      previousPageId: { page, _ in previous(page.id) }
    ) { paging, _ in paging.pages.count }
    return OperationClient(defaults: .testing, clock: ManualClock()).store(for: request)
  }

  private static let fetched = #"["feed", 1] cannot stand beside page "#

  private static let pages: [BadInput] = [
    BadInput("nextPageId", "nan", "[0.0, 1.0], no next", reports: [fetched + "1.0", fetched]) {
      let store = feed { $0 < 1 ? $0 + 1 : .nan }
      try await store.fetchNextPage()
      try await store.fetchNextPage()
      #expect(try await store.fetchNextPage() == nil)
      return "\(store.currentValue.ids), \(store.hasNextPage ? "a" : "no") next"
    },
    BadInput("previousPageId", "nan", "[0.0], no previous", reports: [fetched, fetched]) {
      let store = feed(previous: { _ in .nan })
      try await store.fetchNextPage()
      #expect(try await store.fetchPreviousPage() == nil)
      return "\(store.currentValue.ids), \(store.hasPreviousPage ? "a" : "no") previous"
    },
    BadInput("nextPageId, of all pages", "nan", "[0.0], no next", reports: [fetched, fetched]) {
      let isBroken = Latch()
      let store = feed { isBroken.isOpen ? .nan : $0 + 1 }
      for _ in 0..<3 { try await store.fetchNextPage() }
      isBroken.open()
      try await store.fetchAllPages()
      return "\(store.currentValue.ids), \(store.hasNextPage ? "a" : "no") next"
    },
    BadInput("initialPageId", "nan", "1 page, no next", reports: [fetched + "nan", fetched]) {
      let store = feed(initial: .nan)
      try await store.fetchNextPage()
      #expect(try await store.fetchNextPage() == nil)
      return "\(store.currentValue.count) page, \(store.hasNextPage ? "a" : "no") next"
    },
    BadInput("initialPageId, fetched again", "nan", "1 page, 1 value", reports: [fetched, fetched])
    {
      let store = feed(initial: .nan)
      try await store.fetchAllPages()
      try await store.fetchAllPages()
      return "\(store.currentValue.count) page, \(store.currentValue[0].value) value"
    },
    BadInput("PaginatedPage.init(id:value:)", "nan, set", "2 pages, no next", reports: [fetched]) {
      let store = feed()
      store.currentValue = [PaginatedPage(id: 0, value: 0), PaginatedPage(id: .nan, value: 1)]
      return "\(store.currentValue.count) pages, \(store.hasNextPage ? "a" : "no") next"
    },
    BadInput("PaginatedRefetch.pages", "nan, and others that are not there", "[0.0, 1.0]") {
      let request = Feed(
        path: ["feed", 1], initialPageId: 0, nextPageId: { page, _ in page.id + 1 }
      ) { paging, _ in paging.pages.count }
      let client = OperationClient(defaults: .testing, clock: ManualClock())
      let store = client.store(for: request.refetching(.pages { _ in [.nan, -1, 1, 1] }))
      for _ in 0..<2 { try await store.fetchNextPage() }
      try await store.fetch()
      return "\(store.currentValue.ids)"
    },
  ]

  @Test(
    "A page that cannot be found again is reported and ignored, and the other pages stay",
    arguments: pages)
  func page(row: BadInput) async throws {
    try await row.check(.unequalIdentity)
  }

  static let table = arrays + pages + scopes

  /// Returns how many calls of two stores in one client are in flight at once.
  private static func together<Scope: Hashable & Sendable>(
    _ scope: @escaping @Sendable (Int) -> Scope
  ) async throws -> String {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let script = Monitor((now: 0, most: 0))
    let stores = (0..<2).map { id in
      client.store(
        for: Mutation<Int, Int>(path: ["change", id]) { number, _ in
          script.update {
            $0.now += 1
            $0.most = max($0.most, $0.now)
          }
          for _ in 0..<100 { await Task.yield() }
          script.update { $0.now -= 1 }
          return number
        }.serialized(in: scope(id)))
    }
    try await withThrowingTaskGroup { group in
      for store in stores {
        for number in 0..<3 { group.addTask { try await store.mutate(with: number) } }
      }
      try await group.waitForAll()
    }
    return "\(script.value.most) at once"
  }

  private static let scopes: [BadInput] = [
    BadInput(
      "serialized(in:)", "nan", "1 at once",
      reports: Array(repeating: "Mutation<Int, Int> cannot be nan", count: 2)
    ) { try await together { _ in Double.nan } },
    BadInput("serialized(in:)", "an empty name", "1 at once") { try await together { _ in "" } },
    BadInput("serialized(in:)", "100,000 names", "1 at once") {
      try await together { _ in Array(repeating: "name", count: 100_000) }
    },
    BadInput("serialized(in:)", "nothing", "1 at once") {
      try await together { _ in Int?.none }
    },
  ]

  @Test(
    "A scope that is not equal to itself is reported, and still permits one run at a time",
    arguments: scopes)
  func scope(row: BadInput) async throws {
    try await row.check(.unequalIdentity)
  }
}
