import Observation
import SharingOperation
import Synchronization
import Testing

@Suite struct SelectionTests {
  private let client = OperationClient(defaults: .testing, clock: ManualClock())

  @Test("A wrapper that is bound to nothing is unbacked") func nothing() async throws {
    let wrapper = SharedQuery(DetailQuery(id: 1), client: client)
    #expect(try await wrapper.fetch() == "detail 1")
    wrapper.bind(to: nil)
    #expect(!wrapper.isBacked)
    #expect(wrapper.wrappedValue == nil)
    await #expect(throws: SharedQueryError.unbacked) { try await wrapper.fetch() }
    let none: DetailQuery? = nil
    wrapper.bind(to: DetailQuery(id: 2))
    wrapper.bind(to: none)
    #expect(!wrapper.isBacked)
    wrapper.bind(to: DetailQuery(id: 1))
    #expect(wrapper.wrappedValue == "detail 1")
  }

  @Test("A dependent wrapper without a request is unbacked") func dependentNothing() async throws {
    // An automatic run could end before the first expectation.
    let id = SharedQuery(Query(path: ["id"]) { _ in 1 }.manual(), client: client)
    let detail = SharedQuery(dependingOn: id) { id in id > 0 ? DetailQuery(id: id) : nil }
    #expect(!detail.isBacked)
    id.withLock { $0 = 3 }
    #expect(detail.isBacked)
    #expect(try await detail.fetch() == "detail 3")
    id.withLock { $0 = -1 }
    #expect(!detail.isBacked)
    #expect(detail.wrappedValue == nil)
  }

  @Test("A selection in a stream drives a query") func stream() async throws {
    let selection = client.store(
      for: Query(path: ["selection"]) { _ in 0 }.manual(), initialValue: nil)
    let detail = SharedQuery(dependingOn: selection.values, client: client) { id in
      id.map { DetailQuery(id: $0) }
    }
    #expect(!detail.isBacked)
    selection.currentValue = 4
    #expect(detail.isBacked)
    #expect(try await detail.fetch() == "detail 4")
    selection.currentValue = nil
    #expect(!detail.isBacked)
  }

  @Test("A first element that is nil is an element") func streamOfOptionals() {
    let selection = client.store(
      for: Query(path: ["selection"]) { _ in 0 }.manual(), initialValue: 0)
    let elements = selection.values.filter { $0 != 0 }
    let detail = SharedQuery(dependingOn: elements, client: client) { DetailQuery(id: $0 ?? 7) }
    #expect(!detail.isBacked)
    selection.currentValue = nil
    #expect(detail.store?.path == ["detail", 7])
  }
}

@Suite struct KeepingPreviousTests {
  private let client = OperationClient(defaults: .testing, clock: ManualClock())

  @Test("The old value is displayed until the new one arrives") func bind() async throws {
    let gate = CancellableGate()
    let wrapper = SharedQuery(DetailQuery(id: 1), client: client)
    try await wrapper.fetch()
    #expect(!wrapper.isPrevious)
    let changes = Mutex(0)
    let origins = Mutex(0)
    withObservationTracking {
      _ = wrapper.wrappedValue
    } onChange: {
      changes.withLock { $0 += 1 }
    }
    withObservationTracking {
      _ = wrapper.isPrevious
    } onChange: {
      origins.withLock { $0 += 1 }
    }
    wrapper.bind(to: DetailQuery(id: 2, gate: gate), keepingPrevious: true)
    #expect(wrapper.wrappedValue == "detail 1")
    #expect(wrapper.isPrevious)
    #expect(wrapper.store?.currentValue == nil)
    #expect(changes.withLock { $0 } == 0)
    #expect(origins.withLock { $0 } == 1)
    gate.open()
    try await wrapper.fetch()
    #expect(wrapper.wrappedValue == "detail 2")
    #expect(!wrapper.isPrevious)
    #expect(changes.withLock { $0 } == 1)
  }

  @Test("An error of the new store is displayed beside the old value") func error() async throws {
    let wrapper = SharedQuery(DetailQuery(id: 1), client: client)
    try await wrapper.fetch()
    wrapper.bind(to: DetailQuery(id: 2, failure: Refusal(reason: "no")), keepingPrevious: true)
    await #expect(throws: Refusal.self) { try await wrapper.fetch() }
    #expect(wrapper.wrappedValue == "detail 1")
    #expect(wrapper.isPrevious)
    #expect(wrapper.error is Refusal)
  }

  @Test("After several bindings without a value, the last value is displayed")
  func chain() async throws {
    let wrapper = SharedQuery(DetailQuery(id: 1), client: client)
    try await wrapper.fetch()
    for id in 2...4 {
      wrapper.bind(to: DetailQuery(id: id, gate: CancellableGate()), keepingPrevious: true)
    }
    #expect(wrapper.wrappedValue == "detail 1")
    wrapper.bind(to: DetailQuery(id: 5, gate: CancellableGate()))
    #expect(wrapper.wrappedValue == nil)
    wrapper.bind(to: DetailQuery(id: 6, gate: CancellableGate()), keepingPrevious: true)
    #expect(wrapper.wrappedValue == nil)
    #expect(!wrapper.isPrevious)
  }

  @Test("Readers are notified when the earlier value is not displayed any more")
  func ended() {
    let client = OperationClient.quiet()
    let numbers = ["a", "b", "c"].map { WrittenNumber(path: ["written", $0]) }
    for next in [numbers[2], nil] {
      let wrapper = SharedQuery(numbers[0], client: client)
      wrapper.withLock { $0 = 1 }
      wrapper.bind(to: numbers[1], keepingPrevious: true)
      let changes = track { #expect(wrapper.wrappedValue == 1) }
      let origins = track { #expect(wrapper.isPrevious) }
      wrapper.bind(to: next)
      #expect(wrapper.wrappedValue == nil)
      #expect(!wrapper.isPrevious)
      #expect(changes.count == 1)
      #expect(origins.count == 1)
    }
  }

  @Test("After a reset the stream has no value, as the wrapper has none")
  func reset() async {
    let client = OperationClient.quiet()
    let wrapper = SharedQuery(WrittenNumber(path: ["written", "a"]), client: client)
    wrapper.withLock { $0 = 1 }
    wrapper.bind(to: WrittenNumber(path: ["written", "b"]), keepingPrevious: true)
    var values = wrapper.values.makeAsyncIterator()
    #expect(await values.next() == 1)
    wrapper.withLock { $0 = 2 }
    #expect(await values.next() == 2)
    wrapper.resetState()
    #expect(wrapper.wrappedValue == nil)
    #expect(await values.next() == .some(nil))
  }

  @Test("A dependent wrapper that is bound to its store again displays the same value")
  func sameAgain() {
    let client = OperationClient.quiet()
    let id = SharedQuery(WrittenNumber(path: ["id"]), client: client)
    id.withLock { $0 = 1 }
    let number = SharedQuery(dependingOn: id, keepingPrevious: true) { (id: Int) in
      WrittenNumber(path: ["written", id])
    }
    number.withLock { $0 = 5 }
    id.withLock { $0 = 2 }
    let changes = track { #expect(number.wrappedValue == 5) }
    number.bind(to: WrittenNumber(path: ["written", 2]))
    #expect(number.wrappedValue == 5)
    #expect(changes.count == 0)
  }

  @Test("After a reset, a dependent wrapper that was bound to its store again displays no value")
  func resetOfKept() async {
    let client = OperationClient.quiet()
    let id = SharedQuery(WrittenNumber(path: ["id"]), client: client)
    id.withLock { $0 = 10 }
    let number = SharedQuery(dependingOn: id, keepingPrevious: true) { (id: Int) in
      WrittenNumber(path: ["written", id / 10])
    }
    number.withLock { $0 = 5 }
    id.withLock { $0 = 11 }
    id.store?.withExclusiveAccess {
      // Other values come and go before they are delivered.
      for value in [20, 10] {
        id.store?.currentValue = value
        #expect(number.wrappedValue == 5)
      }
    }
    let changes = track { #expect(number.wrappedValue == 5) }
    number.resetState()
    #expect(number.wrappedValue == nil && !number.isPrevious)
    #expect(changes.count == 1)
    var values = number.values.makeAsyncIterator()
    #expect(await values.next() == .some(nil))
  }

  @Test("A dependent wrapper keeps the value that it displayed last, delivered or not")
  func keptAhead() {
    let client = OperationClient.quiet()
    for number in 1...2 {
      client.store(for: WrittenNumber(path: ["written", number])).currentValue = 10 * number
    }
    let id = SharedQuery(WrittenNumber(path: ["id"]), client: client)
    id.withLock { $0 = 1 }
    let number = SharedQuery(dependingOn: id, keepingPrevious: true) { (id: Int) in
      WrittenNumber(path: ["written", id])
    }
    #expect(number.wrappedValue == 10)
    id.store?.withExclusiveAccess { store in
      store.currentValue = 2
      #expect(number.wrappedValue == 20)
      store.currentValue = 3
      #expect(number.wrappedValue == 20 && number.isPrevious)
    }
    #expect(number.wrappedValue == 20 && number.isPrevious)
  }

  @Test("An earlier value does not come back when a store with a value is reset while it is bound")
  func resetWhileBinding() async {
    let client = OperationClient.quiet()
    let wrapper = SharedQuery(WrittenNumber(path: ["written", "a"]), client: client)
    wrapper.withLock { $0 = 5 }
    let other = SharedQuery(WrittenNumber(path: ["written", "b"]), client: client)
    other.withLock { $0 = 7 }
    var values = wrapper.values.makeAsyncIterator()
    withObservationTracking {
      _ = wrapper.store
    } onChange: {
      #expect(wrapper.wrappedValue == 7)
      other.resetState()
    }
    wrapper.bind(to: WrittenNumber(path: ["written", "b"]), keepingPrevious: true)
    #expect(wrapper.wrappedValue == nil && !wrapper.isPrevious)
    #expect(await values.next() == .some(nil))
  }

  @Test("After an edit whose work has failed, the old value is displayed again")
  func failedEdit() async {
    let wrapper = SharedQuery(WrittenNumber(path: ["written", "a"]), client: .quiet())
    wrapper.withLock { $0 = 5 }
    wrapper.bind(to: WrittenNumber(path: ["written", "b"]), keepingPrevious: true)
    let received = Log<Int?>()
    let subscription = wrapper.values.source.subscribe { signal in
      if case .element(let value, _) = signal { received.append(value) }
    }
    await #expect(throws: Refusal.self) {
      try await wrapper.optimistically({ $0 = 9 }) { () async throws(Refusal) in
        #expect(wrapper.wrappedValue == 9 && !wrapper.isPrevious)
        throw Refusal(reason: "no")
      }
    }
    #expect(wrapper.wrappedValue == 5 && wrapper.isPrevious)
    #expect(received.elements == [5, 9, 5])
    subscription.cancel()
  }

  @Test("After a reset of a value that an edit has confirmed, the earlier value does not come back")
  func resetOfEdit() async {
    let wrapper = SharedQuery(WrittenNumber(path: ["written", "a"]), client: .quiet())
    wrapper.withLock { $0 = 5 }
    wrapper.bind(to: WrittenNumber(path: ["written", "b"]), keepingPrevious: true)
    var values = wrapper.values.makeAsyncIterator()
    #expect(await values.next() == 5)
    await wrapper.optimistically({ $0 = 9 }) {}
    #expect(await values.next() == 9)
    wrapper.resetState()
    #expect(wrapper.wrappedValue == nil && !wrapper.isPrevious)
    #expect(await values.next() == .some(nil))
  }

  @Test("An edit that leaves a list of pages empty does not hide the earlier pages")
  func editWithoutPages() async {
    func pages(_ name: String) -> Paginated<Int, Int> {
      Paginated(path: ["pages", name], initialPageId: 0, nextPageId: { _, _ in nil }) { _, _ in 5 }
    }
    let wrapper = SharedQuery(pages("a"), client: .quiet())
    wrapper.withLock { $0 = [PaginatedPage(id: 0, value: 5)] }
    wrapper.bind(to: pages("b"), keepingPrevious: true)
    await wrapper.optimistically {
      $0[id: 0]?.value += 1
    } while: {
      #expect(wrapper.wrappedValue.map(\.value) == [5] && wrapper.isPrevious)
    }
    #expect(wrapper.wrappedValue.map(\.value) == [5] && wrapper.isPrevious)
    wrapper.setResult(to: .success([]))
    #expect(wrapper.wrappedValue.isEmpty && !wrapper.isPrevious)
  }

  @Test("An edit that leaves the value missing does not hide the earlier one")
  func editWithoutValue() async throws {
    let wrapper = SharedQuery(WrittenNumber(path: ["written", "a"]), client: .quiet())
    wrapper.withLock { $0 = 5 }
    wrapper.bind(to: WrittenNumber(path: ["written", "b"]), keepingPrevious: true)
    let values = track { #expect(wrapper.wrappedValue == 5) }
    try await wrapper.optimistically({ $0 = $0.map { $0 + 1 } }) { () async throws -> Void in
      #expect(wrapper.wrappedValue == 5 && wrapper.isPrevious)
    }
    #expect(wrapper.wrappedValue == 5 && wrapper.isPrevious)
    #expect(values.count == 0)
    wrapper.withLock { $0 = 7 }
    #expect(wrapper.wrappedValue == 7 && !wrapper.isPrevious)
  }

  @Test("A dependent wrapper displays the last value, and its stream never has a missing one")
  func dependent() async throws {
    let id = SharedQuery(Query(path: ["id"]) { _ in 1 }.manual(), client: client)
    id.withLock { $0 = 1 }
    let gate = CancellableGate()
    let detail = SharedQuery(dependingOn: id, keepingPrevious: true) { id in
      DetailQuery(id: id, gate: id == 1 ? nil : gate)
    }
    try await detail.fetch()
    var values = detail.values.makeAsyncIterator()
    #expect(await values.next() == "detail 1")
    id.withLock { $0 = 2 }
    #expect(detail.wrappedValue == "detail 1")
    #expect(detail.isPrevious)
    gate.open()
    #expect(await values.next() == "detail 2")
    #expect(!detail.isPrevious)
  }
}

@Suite struct SelectTests {
  private struct Post: Sendable, Equatable {
    var title: String
    var likes: Int
  }

  private static let query = Query(path: ["post"]) { _ in Post(title: "a", likes: 1) }.manual()
  private let client = OperationClient(defaults: .testing, clock: ManualClock())

  @Test("Readers are notified when the selected part changes, and only then") func select()
    async throws
  {
    let title = SharedQuery(Self.query, client: client, select: { $0.title })
    #expect(title.wrappedValue == nil)
    try await title.fetch()
    #expect(title.wrappedValue == "a")
    let changes = Mutex(0)
    withObservationTracking {
      _ = title.wrappedValue
    } onChange: {
      changes.withLock { $0 += 1 }
    }
    let store = client.store(for: Self.query)
    store.currentValue = Post(title: "a", likes: 2)
    #expect(changes.withLock { $0 } == 0)
    store.currentValue = Post(title: "b", likes: 2)
    #expect(changes.withLock { $0 } == 1)
    #expect(title.wrappedValue == "b")
    #expect(title.state.base.currentValue == Post(title: "b", likes: 2))
  }

  @Test("A wrapper of the same query without it has the same store") func sameStore() {
    let title = SharedQuery(Self.query, client: client, select: { $0.title })
    let post = SharedQuery(Self.query, client: client)
    #expect(title.store === post.store)
  }

  @Test("A write to a part is reported, and dropped") func write() async throws {
    let title = SharedQuery(Self.query, client: client, select: { $0.title })
    try await title.fetch()
    let kinds = Mutex<[OperationIssue.Kind]>([])
    OperationIssue.withHandler { issue in
      kinds.withLock { $0.append(issue.kind) }
    } operation: {
      title.withLock { $0 = "b" }
      title.setResult(to: .success("c"))
    }
    #expect(kinds.withLock { $0 } == [.unbackedWrite, .unbackedWrite])
    #expect(title.wrappedValue == "a")
  }

  @Test("The number of pages can be selected") func pages() async throws {
    let pages = Paginated(path: ["pages"], initialPageId: 0, nextPageId: { page, _ in page.id + 1 })
    {
      paging, _ in paging.pageId
    }
    .manual()
    let count = SharedQuery(pages, client: client, select: { $0.count })
    #expect(count.wrappedValue == 0)
    try await client.fetch(pages)
    #expect(count.wrappedValue == 1)
  }

  @Test("A stream of a part has no repeats") func stream() async throws {
    let store = client.store(for: Self.query)
    var titles = store.values(select: { $0?.title }).makeAsyncIterator()
    #expect(await titles.next() == .some(nil))
    store.currentValue = Post(title: "a", likes: 1)
    #expect(await titles.next() == "a")
    store.currentValue = Post(title: "a", likes: 2)
    store.currentValue = Post(title: "b", likes: 2)
    #expect(await titles.next() == "b")
  }
}
