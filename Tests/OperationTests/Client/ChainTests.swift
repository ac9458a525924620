import Synchronization
import Testing

@testable import Operation

@Suite(.timeLimit(.minutes(5))) struct ChainTests {
  private let client = OperationClient(defaults: .testing)

  private func user(_ id: Int) -> Query<Int, any Error> {
    Query(path: ["user"]) { _ in id }
  }

  private static func projects(_ user: Int) -> Query<[String], any Error> {
    Query(path: ["projects", user]) { _ in ["a\(user)", "b\(user)"] }
  }

  private static func tasks(_ projects: [String]) -> Query<String, any Error> {
    Query(path: ["tasks", projects]) { _ in projects.joined() }
  }

  @Test("The elements of a chain are the values of its last request, and follow its first")
  func elements() async {
    let store = client.store(for: user(1))
    var tasks = store.chain(Self.projects).chain(Self.tasks).makeAsyncIterator()
    while let text = await tasks.next(), text != "a1b1" {}
    store.currentValue = 2
    while let text = await tasks.next(), text != "a2b2" {}
    store.currentValue = nil
    while let text = await tasks.next(), text != nil {}
    #expect(client.store(with: ["projects", 1])?.subscriberCount == 0)
  }

  @Test("Closures without types get the value if there is one")
  func plainClosures() async {
    let store = client.store(for: user(1))
    var texts =
      store
      .chain { user in Query(path: ["projects", user]) { _ in ["a\(user)", "b\(user)"] } }
      .chain { projects in Query(path: ["tasks", projects]) { _ in projects.joined() } }
      .chain { _ in Query(path: ["length"]) { _ in 4 } }
      .makeAsyncIterator()
    while let length = await texts.next(), length != 4 {}
    #expect(client.store(with: ["tasks", ["a1", "b1"]]) != nil)
  }

  @Test("A request is created again when the value before it changes, and only then")
  func createdOnlyOnChange() async {
    let created = Mutex<[Int]>([])
    let store = client.store(for: user(1))
    var projects = client.chain(user(1)) { user in
      created.withLock { $0.append(user) }
      return Self.projects(user)
    }.makeAsyncIterator()
    while let value = await projects.next(), value == nil {}
    store.currentValue = 1
    store.currentValue = 1
    store.currentValue = 2
    while let value = await projects.next(), value != ["a2", "b2"] {}
    #expect(created.withLock { $0 } == [1, 2])
  }

  @Test("A link whose request is unchanged keeps the run of its store") func sameRequest() async {
    let (gate, calls) = (AsyncGate(), Counter())
    let projects = Query<[String], any Error>(path: ["projects"]) { _ in
      calls.increment()
      await gate.wait()
      return ["a"]
    }
    let store = client.store(for: user(1))
    let created = Counter()
    var values = store.chain { (user: Int) in
      created.increment()
      return projects
    }.makeAsyncIterator()
    _ = await values.next()
    #expect(await eventually { calls.value == 1 })
    store.currentValue = 2
    #expect(await eventually { created.value == 2 })
    gate.open()
    while let value = await values.next(), value != ["a"] {}
    #expect(calls.value == 1)
  }

  @Test("A stored chain follows the store that its client has when it is read")
  func lookedUpWhenRead() async {
    let chain = client.chain(user(1), Self.projects)
    _ = client.store(for: user(1))
    client.clearStores()
    let store = client.store(for: user(1))
    var projects = chain.makeAsyncIterator()
    while let value = await projects.next(), value != ["a1", "b1"] {}
    store.currentValue = 2
    while let value = await projects.next(), value != ["a2", "b2"] {}
    #expect(store.subscriberCount == 1)
  }

  /// A value that cannot be compared.
  private struct Label: Sendable { let text: String }

  @Test("A chain can lead through values that are not optional or cannot be compared")
  func otherValues() async {
    let pages = Paginated<Int, String>(
      path: ["pages"], initialPageId: 0, nextPageId: { _, _ in nil }
    ) { _, _ in "first" }
    var labels = client.store(for: pages)
      .chain { pages in Query<Int, any Error>(path: ["count", pages.count]) { _ in pages.count } }
      .chain { (count: Int?) in
        Query<Label, any Error>(path: ["label", "\(count, default: "none")"]) { _ in
          Label(text: "\(count, default: "none")")
        }
      }
      .makeAsyncIterator()
    while let label = await labels.next(), label?.text != "1" {}
    #expect(client.stores(matching: ["label"]).contains { $0.path == ["label", "1"] })
  }

  @Test("The chain of a store without a client uses the shared client")
  func withoutClient() async {
    let store = OperationStore.detached(query: user(3))
    store.currentValue = 3
    await OperationClient.withCurrent(client) {
      var projects = store.chain(Self.projects).makeAsyncIterator()
      while let value = await projects.next(), value != ["a3", "b3"] {}
      #expect(client.store(with: ["projects", 3]) != nil)
    }
  }

  @Test("A chain ends its subscriptions with its iterator") func endsSubscriptions() async {
    let store = client.store(for: user(1))
    do {
      var tasks = store.chain(Self.projects).chain(Self.tasks).makeAsyncIterator()
      while let text = await tasks.next(), text == nil {}
    }
    // A thread that is about to subscribe to a link ends its subscription right after that.
    while !client.stores(matching: [], where: .observed).isEmpty { await Task.yield() }
    #expect(store.subscriberCount == 0)
  }

  @Test("A link behind pages gets them, also when there are none")
  func behindPages() async {
    var counts =
      client.store(for: user(1))
      .chain { user in
        Paginated<Int, Int>(path: ["pages", user], initialPageId: 0, nextPageId: { _, _ in nil }) {
          _, _ in user
        }
      }
      .chain { pages in Query<Int, any Error>(path: ["count", pages.count]) { _ in pages.count } }
      .makeAsyncIterator()
    while let count = await counts.next(), count != 1 {}
    #expect(client.store(with: ["count", 0]) != nil)
  }
}
