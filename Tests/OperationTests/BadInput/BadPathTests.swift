import Operation
import Testing

/// The result of every public entry with a path for unusual paths.
@Suite("Bad input: paths", .timeLimit(.minutes(5))) struct BadPathTests {
  /// An unusual path, in two copies that share no storage.
  private struct Path: Sendable {
    let name: String
    let one: OperationPath
    let other: OperationPath
    /// The number of stores below it, of the two of a client.
    let below: Int
    /// The report of its store.
    let report: (kind: OperationIssue.Kind, text: String)?
    /// Whether its store is found again.
    let isFound: Bool

    init(
      name: String, make: () -> OperationPath, below: Int = 1,
      report: (kind: OperationIssue.Kind, text: String)? = nil, isFound: Bool = true
    ) {
      self.name = name
      (one, other) = (make(), make())
      self.below = below
      self.report = report
      self.isFound = isFound
    }
  }

  private static let paths: [Path] = [
    Path(
      name: "an empty path", make: { [] }, below: 2,
      report: (.emptyPath, "The path of OpenQuery is empty")),
    Path(
      name: "100,000 elements",
      make: { OperationPath((0..<100_000).map { "\($0)" as any Hashable & Sendable }) }),
    Path(name: "empty names", make: { ["", "", ""] }),
    Path(name: "a path in a path", make: { [["a"] as OperationPath, [] as OperationPath] }),
    Path(
      name: "a number that is none", make: { ["a", Double.nan, 1] }, below: 0,
      report: (
        .unequalIdentity, #"Element 1 of ["a", nan, 1], the path of OpenQuery, is not equal"#
      ), isFound: false),
    Path(
      name: "an element that is never equal", make: { [Never.once] }, below: 0,
      report: (.unequalIdentity, "Element 0 of"), isFound: false),
  ]

  /// A value that is not equal to any value, itself included.
  private enum Never: Hashable, Sendable {
    case once

    static func == (lhs: Never, rhs: Never) -> Bool { false }
    func hash(into hasher: inout Hasher) {}
  }

  /// An entry, and its result in a client that has the store of the path and another one.
  private struct Entry: Sendable {
    let name: String
    let isMatch: Bool
    let count: @Sendable (OperationClient, OperationPath) async throws -> Int
  }

  private typealias State = QueryState<Int, any Error>

  private static func matching(
    _ name: String,
    _ count: @escaping @Sendable (OperationClient, OperationPath) async throws -> Int
  ) -> Entry {
    Entry(name: name, isMatch: true, count: count)
  }

  /// Returns the number of stores for which a predicate returns true.
  private static func count(
    _ client: OperationClient, _ isChanged: (OperationStore<State>) -> Bool
  ) -> Int {
    client.stores(matching: [], of: State.self).filter(isChanged).count
  }

  private static let entries: [Entry] = [
    Entry(name: "store(with:)", isMatch: false) { client, path in
      client.store(with: path) == nil ? 0 : 1
    },
    Entry(name: "OperationStoreCollection.subscript(path:)", isMatch: false) { client, path in
      client.stores(matching: [])[path] == nil ? 0 : 1
    },
    Entry(name: "clearStore(with:)", isMatch: false) { client, path in
      let count = client.stores(matching: []).count
      client.clearStore(with: path)
      return count - client.stores(matching: []).count
    },
    matching("stores(matching:where:)") { $0.stores(matching: $1).count },
    matching("stores(matching:of:where:)") { $0.stores(matching: $1, of: State.self).count },
    matching("withStores(matching:of:where:_:)") { client, path in
      client.withStores(matching: path, of: State.self) { $0.count }
    },
    matching("clearStores(matching:where:)") { client, path in
      let count = client.stores(matching: []).count
      client.clearStores(matching: path)
      return count - client.stores(matching: []).count
    },
    matching("subscribe(matching:where:onChange:)") { client, path in
      let removed = Counter()
      let subscription = client.subscribe(matching: path) { change in
        for _ in change.storesRemoved { removed.increment() }
      }
      client.clearStores()
      subscription.cancel()
      return removed.value
    },
    matching("storeChanges(matching:where:)") { client, path in
      var changes = client.storeChanges(matching: path).makeAsyncIterator()
      client.clearStores()
      _ = client.store(for: OpenQuery(script: Script(), path: path.appending("end")))
      guard !path.contains(where: { $0 != $0 }) else { return 0 }
      return await changes.next()?.storesRemoved.count ?? 0
    },
    matching("optimistically(matching:of:where:_:while:)") { client, path in
      await client.optimistically(matching: path, of: State.self) {
        $0 = 9
      } while: {
        count(client) { $0.currentValue == 9 }
      }
    },
    matching("fetch(matching:where:)") { client, path in
      try await client.fetch(matching: path)
      return count(client) { $0.currentValue == 1 }
    },
    matching("ensure(matching:where:)") { client, path in
      try await client.ensure(matching: path)
      return count(client) { $0.currentValue == 1 }
    },
    matching("prefetch(matching:where:)") { client, path in
      await client.prefetch(matching: path)
      return count(client) { $0.currentValue == 1 }
    },
    matching("invalidate(matching:where:running:)") { client, path in
      for store in client.stores(matching: [], of: State.self) { store.currentValue = 0 }
      client.invalidate(matching: path)
      return count(client, \.isStale)
    },
    matching("cancel(matching:where:)") { client, path in
      let tasks = client.stores(matching: [], of: State.self).map { $0.runTask() }
      client.cancel(matching: path)
      return tasks.filter(\.isCancelled).count
    },
    matching("reset(matching:where:)") { client, path in
      for store in client.stores(matching: [], of: State.self) { store.currentValue = 0 }
      client.reset(matching: path)
      return count(client) { $0.currentValue == nil }
    },
  ]

  private static func makeClient(_ path: OperationPath) -> OperationClient {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    for path in [path, ["bystander"]] {
      _ = client.store(for: OpenQuery(script: Script(), path: path).neverStale())
    }
    return client
  }

  private static let lookups: [BadInput] = entries.flatMap { entry in
    paths.map { path in
      let found = entry.isMatch ? path.below : path.isFound ? 1 : 0
      return BadInput(entry.name, path.name, "\(found) found") {
        let client = OperationIssue.withHandler({ _ in }) { makeClient(path.one) }
        return try await OperationIssue.withHandler({ _ in }) { () async throws -> String in
          "\(try await entry.count(client, path.other)) found"
        }
      }
    }
  }

  @Test("An unusual path finds its stores, and no others", arguments: lookups)
  func lookUp(row: BadInput) async throws {
    try await row.check()
  }

  private static let stores: [(BadInput, OperationIssue.Kind)] = paths.map { path in
    let outcome = path.isFound ? "one store" : "two stores that are not kept"
    // A store that is not retained is reported each time, and any other store once.
    let count = path.report == nil ? 0 : path.isFound ? 1 : 2
    let reports = Array(repeating: path.report?.text ?? "", count: count)
    let row = BadInput("store(for:)", path.name, outcome, reports: reports) {
      let client = OperationClient(defaults: .testing, clock: ManualClock())
      let stores = [path.one, path.other].map { path in
        client.store(for: OpenQuery(script: Script(), path: path))
      }
      for store in stores { _ = try await store.run() }
      #expect(client.activity == OperationActivity())
      if stores[0] === stores[1] {
        #expect(client.stores(matching: []).count == 1)
        return "one store"
      }
      #expect(client.stores(matching: []).isEmpty)
      return "two stores that are not kept"
    }
    return (row, path.report?.kind ?? .invalidValue)
  }

  @Test(
    "A request with an unusual path gets a store, and a bad path is reported", arguments: stores)
  func store(row: BadInput, kind: OperationIssue.Kind) async throws {
    try await row.check(kind)
  }

  @Test("A store that is not retained works for its owners, and leaves no object behind")
  func unretained() async throws {
    let clock = ManualClock()
    let client = OperationClient(defaults: .testing, clock: clock)
    let changes = Recorder<OperationStoreChange>()
    let watch = client.subscribe { changes.append($0) }
    let live = LiveCount()
    let reported = try await issues { () async throws -> Void in
      for number in 0..<100 {
        let probe = live.makeProbe()
        let query = Query(path: ["feed", Double.nan]) { _ in
          withExtendedLifetime(probe) { number }
        }
        #expect(try await client.fetch(query) == number)
        let store = client.store(for: query)
        store.currentValue = 1
        let subscription = store.subscribe { _ in }
        client.invalidate(query)
        client.reset(query)
        await store.settles { !$0.isLoading }
        #expect(store.context.operationClient === client)
        subscription.cancel()
      }
    }
    #expect(reported.issues.count == 200, "once for each call that gets a store")
    #expect(await eventually { live.value == 0 })
    #expect(changes.count == 0)
    #expect(client.activity == OperationActivity())
    #expect(client.stores(matching: []).isEmpty)
    watch.cancel()
  }

  @Test("A request that reads a query on a bad path gets its value, and has no dependency then")
  func dependency() async throws {
    let client = OperationClient(defaults: .testing, clock: ManualClock())
    let reader = Query(path: ["reader"]) { context in
      let query = Query(path: [Double.nan]) { _ in 1 }
      return try await context.ensure(query) + (context.value(of: query) ?? 10)
    }
    let reported = try await issues { try await client.fetch(reader) }
    #expect(reported.output == 11)
    #expect(reported.issues.map(\.kind) == [.unequalIdentity, .unequalIdentity])
    client.clearStores()
    #expect(client.stores(matching: []).isEmpty)
  }

  private static let makings: [BadInput] = paths.flatMap { path in
    let isEqual = path.isFound ? "equal" : "unequal"
    return [
      BadInput("OperationPath.init(_:)", path.name, isEqual) {
        path.one == path.other ? "equal" : "unequal"
      },
      BadInput("isPrefix(of:)", path.name, path.isFound ? "true" : "false") {
        "\(path.one.isPrefix(of: path.other.appending("end")))"
      },
      BadInput("append(_:), appending(_:)", path.name, "all elements") {
        var whole = path.one
        whole.append("end")
        whole.append(path.other)
        let count = whole.appending(Double.nan).appending(path.other).count
        return count == 3 * path.one.count + 2 ? "all elements" : "\(count) elements"
      },
      BadInput("OperationPath.description", path.name, "brackets") {
        let text = path.one.description
        return text.first == "[" && text.last == "]" ? "brackets" : text
      },
    ]
  }

  static let table = lookups + stores.map(\.0) + makings

  @Test("An unusual path can be made, compared, extended and described", arguments: makings)
  func make(row: BadInput) async throws {
    try await row.check()
  }
}
