import Observation
import SharingOperation
import Synchronization
import Testing

/// Wrappers that follow wrappers that follow another one.
@Suite struct WrapperChainTests {
  private typealias Number = SharedQuery<WrittenNumber.State>

  private let client = OperationClient.quiet()

  private func store(_ path: OperationPath) -> OperationStore<WrittenNumber.State> {
    client.store(for: WrittenNumber(path: path))
  }

  /// How the wrapper in the middle comes back to the store that it is bound to.
  enum Return: CaseIterable {
    case byRoot, byHand
  }

  /// Returns a wrapper of a number, one that follows it, and one that follows that one. While a two is
  /// delivered, and before the second wrapper is notified of it, `body` is called. Then the number is one
  /// again, or the second wrapper is bound by hand to the request that it has for one.
  private func chain(
    _ way: Return, _ body: @escaping @Sendable (_ last: Number) -> Void
  ) -> [Number] {
    for number in 1...2 {
      store(["middle", number]).currentValue = 10 * number
      store(["last", 10 * number]).currentValue = 100 * number
    }
    let (wrappers, calls, root) = (Log<Number>(), Counter(), store(["root"]))
    root.currentValue = 1
    let subscription = root.subscribe { event in
      guard event.state?.currentValue == 2, calls.increment() == 1 else { return }
      let (middle, last) = (wrappers.elements[0], wrappers.elements[1])
      body(last)
      switch way {
      case .byRoot: root.currentValue = 1
      case .byHand: middle.bind(to: WrittenNumber(path: ["middle", 1]))
      }
    }
    let first = SharedQuery(WrittenNumber(path: ["root"]), client: client)
    let middle = SharedQuery(dependingOn: first) { WrittenNumber(path: ["middle", $0]) }
    let last = SharedQuery(dependingOn: middle) { WrittenNumber(path: ["last", $0]) }
    wrappers.append(middle)
    wrappers.append(last)
    root.currentValue = 2
    subscription.cancel()
    wrappers.removeAll()
    return [first, middle, last]
  }

  @Test("A reader of the last wrapper that was ahead is notified", arguments: Return.allCases)
  func readAhead(way: Return) {
    let counters = Log<Counter>()
    let wrappers = chain(way) { last in
      counters.append(track { #expect(last.wrappedValue == 200) })
    }
    #expect(wrappers[2].wrappedValue == 100)
    #expect(counters.elements.map(\.count) == [1])
  }

  @Test("The last wrapper follows the store that it displays", arguments: Return.allCases)
  func back(way: Return) {
    let wrappers = chain(way) { [client] _ in
      // The last wrapper is notified by the store that the second one is bound to.
      client.store(for: WrittenNumber(path: ["middle", 1]))
        .setResult(to: .failure(Refusal(reason: "no")))
    }
    #expect(store(["last", 10]).subscriberCount == 1)
    #expect(store(["last", 20]).subscriberCount == 0)
    let changes = track { #expect(wrappers[2].wrappedValue == 100) }
    store(["last", 10]).currentValue = 7
    #expect(changes.count == 1)
  }

  @Test("A wrapper that is followed early does not notify readers of members that stay")
  func earlyFollower() {
    store(["root"]).currentValue = 1
    for number in 1...2 { store(["middle", number]).currentValue = 5 }
    let (middles, lasts) = (Log<Number>(), Log<Number>())
    let subscription = store(["root"]).subscribe { event in
      guard event.state?.currentValue == 2, let middle = middles.elements.first else { return }
      lasts.append(SharedQuery(dependingOn: middle) { WrittenNumber(path: ["last", $0]) })
    }
    let root = SharedQuery(WrittenNumber(path: ["root"]), client: client)
    let middle = SharedQuery(dependingOn: root) { WrittenNumber(path: ["middle", $0]) }
    middles.append(middle)
    let value = track { #expect(middle.wrappedValue == 5) }
    store(["root"]).currentValue = 2
    #expect(middle.wrappedValue == 5 && lasts.elements.count == 1)
    #expect(value.count == 0)
    subscription.cancel()
    middles.removeAll()
    lasts.removeAll()
  }

  @Test("An explicit binding is kept while the other wrapper displays an earlier value")
  func explicitBesidePrevious() {
    let id = SharedQuery(WrittenNumber(path: ["id"]), client: client)
    store(["id"]).currentValue = 1
    let middle = SharedQuery(dependingOn: id, keepingPrevious: true) { Query.opaque($0) }
    middle.withLock { $0 = Opaque(number: 1) }
    let calls = Counter()
    let last = SharedQuery(dependingOn: middle) { value in
      calls.increment()
      return WrittenNumber(path: ["of", value.number])
    }
    store(["id"]).currentValue = 2
    #expect(middle.isPrevious)
    let before = calls.count
    #expect(last.store === store(["of", 1]))
    last.bind(to: WrittenNumber(path: ["other"]))
    #expect(last.store === store(["other"]))
    #expect(calls.count == before)
  }

  @Test("An explicit binding is kept during an optimistic edit of the other wrapper, and after it")
  func explicitDuringEdit() async {
    let id = SharedQuery(Query.opaque(1), client: client)
    id.withLock { $0 = Opaque(number: 1) }
    let last = SharedQuery(dependingOn: id) { WrittenNumber(path: ["of", $0.number]) }
    await id.optimistically({ $0 = Opaque(number: 2) }) {
      #expect(last.store === store(["of", 2]))
      last.bind(to: WrittenNumber(path: ["other"]))
      #expect(last.store === store(["other"]))
    }
    #expect(last.store === store(["other"]))
  }

  @Test("A wrapper follows each of two edits that are displayed one after the other")
  func edits() async {
    let id = SharedQuery(Query.opaque(1), client: client)
    id.withLock { $0 = Opaque(number: 1) }
    let last = SharedQuery(dependingOn: id) { WrittenNumber(path: ["of", $0.number]) }
    let (doors, displayed) = ([Door(), Door()], [Door(), Door()])
    let edits = (0..<2).map { index in
      Task {
        if index == 1 { await displayed[0].passed() }
        try await id.optimistically({ $0 = Opaque(number: 2 + index) }) {
          displayed[index].open()
          await doors[index].passed()
          throw Refusal(reason: "no")
        }
      }
    }
    await displayed[1].passed()
    #expect(last.store === store(["of", 3]))
    for index in [1, 0] {
      doors[index].open()
      _ = await edits[index].result
      #expect(last.store === store(["of", index + 1]))
    }
  }

  private struct Counted: Equatable, Sendable {
    static let comparisons = Atomic(0)

    let number: Int

    static func == (lhs: Counted, rhs: Counted) -> Bool {
      comparisons.add(1, ordering: .relaxed)
      return lhs.number == rhs.number
    }
  }

  @Test("A read of a chain whose wrappers display earlier values costs its length")
  func longChain() {
    @Sendable func query(_ level: Int, _ number: Int) -> Query<Counted, any Error> {
      Query(path: ["level", level, number]) { _ in Counted(number: number) }
    }
    let depth = 12
    var chain = [SharedQuery(query(0, 0), client: client)]
    for level in 0..<depth {
      chain[level].withLock { $0 = Counted(number: 1) }
      chain.append(
        SharedQuery(dependingOn: chain[level], keepingPrevious: true) {
          query(level + 1, $0.number)
        })
    }
    chain[depth].withLock { $0 = Counted(number: 1) }
    chain[0].withLock { $0 = Counted(number: 2) }
    for level in 1...depth { chain[level].bind(to: query(level, 9), keepingPrevious: true) }
    Counted.comparisons.store(0, ordering: .relaxed)
    #expect(chain[depth].wrappedValue?.number == 1 && chain[depth].isPrevious)
    #expect(Counted.comparisons.load(ordering: .relaxed) <= 4 * depth)
  }
}
