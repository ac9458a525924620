import Synchronization
import Testing

@testable import Operation

@Suite struct ChainTests {
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

  @Test("A chain gives the values of its last request, and turns with its first")
  func turns() async {
    let store = client.store(for: user(1))
    var tasks = store.chain(Self.projects).chain(Self.tasks).makeAsyncIterator()
    #expect(await Self.next(&tasks) { $0 != nil } == "a1b1")
    store.currentValue = 2
    #expect(await Self.next(&tasks) { $0 == "a2b2" } == "a2b2")
    store.currentValue = nil
    #expect(await Self.next(&tasks) { $0 == nil } == .some(nil))
    #expect(client.store(with: ["projects", 1])?.subscriberCount == 0)
  }

  @Test("A request is made anew when the value before it changes, and only then")
  func madeOnlyOnChange() async {
    let made = Mutex<[Int]>([])
    let store = client.store(for: user(1))
    var projects = client.chain(user(1)) { user in
      made.withLock { $0.append(user) }
      return Self.projects(user)
    }.makeAsyncIterator()
    _ = await Self.next(&projects) { $0 != nil }
    store.currentValue = 1
    store.currentValue = 1
    store.currentValue = 2
    _ = await Self.next(&projects) { $0 == ["a2", "b2"] }
    #expect(made.withLock { $0 } == [1, 2])
  }

  @Test("A chain leaves its stores when its iterator goes", .timeLimit(.minutes(1)))
  func leaves() async {
    let store = client.store(for: user(1))
    do {
      var tasks = store.chain(Self.projects).chain(Self.tasks).makeAsyncIterator()
      _ = await Self.next(&tasks) { $0 != nil }
    }
    // A thread that was about to subscribe to a link leaves it as soon as it has.
    while !client.stores(matching: [], where: .observed).isEmpty { await Task.yield() }
    #expect(store.subscriberCount == 0)
  }

  private static func next<Element>(
    _ iterator: inout StateStream<Element>.Iterator, where isWanted: (Element) -> Bool
  ) async -> Element? {
    while let element = await iterator.next() {
      if isWanted(element) { return element }
    }
    return nil
  }
}
