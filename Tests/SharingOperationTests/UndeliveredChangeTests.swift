import Foundation
import Observation
import SharingOperation
import Testing

/// Events between a change of the other wrapper and its delivery to the dependent one.
@Suite struct UndeliveredChangeTests {
  /// A value that calls a closure in its deinitialiser, as a value of a user may.
  private final class Token: Sendable {
    let number: Int
    let onEnd: @Sendable (Int) -> Void

    init(_ number: Int, onEnd: @escaping @Sendable (Int) -> Void) {
      self.number = number
      self.onEnd = onEnd
    }

    deinit { onEnd(number) }
  }

  private let client = OperationClient.quiet()
  private let dependents = Log<SharedQuery<WrittenNumber.State>>()
  private let other = WrittenNumber(path: ["other"])

  private func store(_ path: OperationPath) -> OperationStore<WrittenNumber.State> {
    client.store(for: WrittenNumber(path: path))
  }

  /// Returns a wrapper that follows a number, which is one before it is two. While the two is
  /// delivered, and before the wrapper is notified of it, `body` is called.
  private func follow(
    keepingPrevious: Bool = false,
    _ body: @escaping @Sendable (SharedQuery<WrittenNumber.State>) -> Void
  ) -> SharedQuery<WrittenNumber.State> {
    let id = SharedQuery(WrittenNumber(path: ["id"]), client: client)
    id.withLock { $0 = 0 }
    let subscription = id.store?.subscribe { [dependents] event in
      guard case .stateChanged(let state) = event, state.currentValue == 2 else { return }
      dependents.elements.first.map(body)
    }
    let dependent = SharedQuery(dependingOn: id, keepingPrevious: keepingPrevious) { (id: Int) in
      WrittenNumber(path: ["of", id])
    }
    dependents.append(dependent)
    id.withLock { $0 = 1 }
    id.withLock { $0 = 2 }
    subscription?.cancel()
    dependents.removeAll()
    return dependent
  }

  @Test("A wrapper follows what the closure for its request changes while a reader calls it")
  func changeInClosure() throws {
    let id = SharedQuery(WrittenNumber(path: ["id"]), client: client)
    let dependent = SharedQuery(dependingOn: id) { number in
      if number == 2 { id.bind(to: other) }
      return WrittenNumber(path: ["of", number])
    }
    for number in 1...3 {
      client.store(for: WrittenNumber(path: ["of", number])).currentValue = number * 10
    }
    client.store(for: other).currentValue = 3
    id.withLock { $0 = 1 }
    let changes = track { #expect(dependent.wrappedValue == 10) }
    let store = try #require(id.store)
    store.withExclusiveAccess {
      store.currentValue = 2
      #expect(dependent.wrappedValue == 30)
    }
    #expect(changes.count == 1)
    #expect(client.store(for: WrittenNumber(path: ["of", 3])).subscriberCount == 1)
    #expect(dependent.wrappedValue == 30)
  }

  @Test("A late value of the earlier store does not bind that store again")
  func lateValue() {
    store(["of", 0]).currentValue = 5
    let dependent = follow(keepingPrevious: true) { dependent in
      #expect(dependent.store === store(["of", 2]))
      store(["of", 1]).currentValue = 7
      #expect(dependent.store === store(["of", 2]))
    }
    #expect(dependent.store === store(["of", 2]))
    #expect(dependent.wrappedValue == 5)
  }

  @Test("An explicit binding is kept, also if an earlier change is delivered later")
  func boundBeforeDelivery() {
    let dependent = follow { $0.bind(to: other) }
    #expect(dependent.store === store(["other"]))
  }

  @Test(
    "An explicit binding is kept, also if another thread makes one for this or an earlier value",
    arguments: [1, 0])
  func boundWhileMaking(present: Int) {
    let (isMaking, continues, ended) = (DispatchGate(), DispatchGate(), DispatchGate())
    let calls = Counter()
    let id = SharedQuery(WrittenNumber(path: ["id"]), client: client)
    store(["id"]).currentValue = 0
    let dependent = SharedQuery(dependingOn: id) { (id: Int) in
      if id == 1, calls.increment() == 1 {
        isMaking.open()
        continues.wait()
      }
      return WrittenNumber(path: ["of", id])
    }
    Thread.detachNewThread { [self] in
      store(["id"]).currentValue = 1
      ended.open()
    }
    isMaking.wait()
    store(["id"]).currentValue = present
    dependent.bind(to: other)
    continues.open()
    ended.wait()
    #expect(dependent.store === store(["other"]))
    #expect(store(["other"]).subscriberCount == 1 && store(["of", 1]).subscriberCount == 0)
  }

  @Test("Readers of a store that is replaced before the delivery are notified")
  func readBeforeDelivery() {
    store(["of", 1]).currentValue = 5
    store(["of", 2]).currentValue = 7
    store(["other"]).currentValue = 5
    let notifications = Log<Counter>()
    let dependent = follow { dependent in
      notifications.append(track { #expect(dependent.wrappedValue == 7) })
      dependent.bind(to: other)
    }
    #expect(dependent.wrappedValue == 5)
    #expect(notifications.elements.map(\.count) == [1])
  }

  @Test("An explicit binding is followed, also if a delivery made another one right before")
  func boundInDeinitialiser() {
    let isArmed = Counter()
    let id = SharedQuery(WrittenNumber(path: ["id"]), client: client) {
      [dependents, other] number in
      Token(number) { number in
        guard number == 1, isArmed.count == 1 else { return }
        isArmed.increment()
        dependents.elements.first?.bind(to: other)
      }
    }
    store(["id"]).currentValue = 1
    let dependent = SharedQuery(dependingOn: id) { (token: Token) in
      WrittenNumber(path: ["of", token.number])
    }
    dependents.append(dependent)
    isArmed.increment()
    store(["id"]).currentValue = 2
    #expect(dependent.store === store(["other"]))
    let changes = track { _ = dependent.wrappedValue }
    store(["other"]).currentValue = 5
    #expect(changes.count == 1)
    dependents.removeAll()
  }

  @Test("A wrapper follows a change by a task that its closure has started")
  func taskOfClosure() async throws {
    let calls = Counter()
    let id = SharedQuery(Query(path: ["user"]) { _ in calls.increment() }, client: client)
    let tasks = Log<Task<Int, any Error>>()
    let dependent = SharedQuery(dependingOn: id) { [tasks] (number: Int) in
      // The first value is incomplete: another one is fetched.
      if number == 1 { tasks.append(Task { try await id.fetch() }) }
      return WrittenNumber(path: ["of", number])
    }
    _ = try await id.fetch()
    _ = try await tasks.elements[0].value
    #expect(id.wrappedValue == 2)
    #expect(client.store(for: WrittenNumber(path: ["of", 2])).subscriberCount == 1)
    #expect(client.store(for: WrittenNumber(path: ["of", 1])).subscriberCount == 0)
    tasks.removeAll()
    withExtendedLifetime(dependent) {}
  }

  /// What follows a read of the new store, before the wrapper is notified of it.
  enum Sequel: CaseIterable, Sendable {
    case boundToEarlier, sameAsBefore, another
  }

  @Test(
    "A reader that was ahead is notified, whatever the wrapper is bound to then",
    arguments: Sequel.allCases)
  func readAhead(_ sequel: Sequel) {
    for (id, value) in [(1, 5), (2, 7), (3, 5)] { store(["of", id]).currentValue = value }
    let (notifications, bodies) = (Log<Counter>(), Counter())
    let dependent = follow { dependent in
      guard bodies.increment() == 1 else { return }
      notifications.append(track { #expect(dependent.wrappedValue == 7) })
      switch sequel {
      case .boundToEarlier: dependent.bind(to: WrittenNumber(path: ["of", 1]))
      case .sameAsBefore: store(["id"]).currentValue = 1
      case .another: store(["id"]).currentValue = 3
      }
    }
    #expect(dependent.wrappedValue == 5)
    #expect(notifications.elements.map(\.count) == [1])
  }

  @Test(
    "A reader of a value that no subscription has delivered is notified when another one is bound",
    arguments: [true, false])
  func readWhileBinding(isEqual: Bool) {
    let wrapper = SharedQuery(WrittenNumber(path: ["of", 1]), client: client)
    let (first, second) = (store(["of", 1]), store(["other"]))
    for store in [first, second] { store.currentValue = 5 }
    let notifications = Log<Counter>()
    // A reader of the store is notified after the wrapper is bound, and before it follows the store.
    withObservationTracking {
      _ = wrapper.store
    } onChange: { [wrapper] in
      if !isEqual { second.currentValue = 7 }
      notifications.append(track { #expect(wrapper.wrappedValue == (isEqual ? 5 : 7)) })
      if !isEqual { second.currentValue = 5 }
    }
    wrapper.bind(to: other)
    #expect(wrapper.wrappedValue == 5)
    #expect(notifications.elements.map(\.count) == [isEqual ? 0 : 1])
  }

  @Test("A reader of a value of the earlier store that was never delivered is notified")
  func readBeforeBinding() {
    store(["other"]).currentValue = 5
    store(["of", 1]).currentValue = 5
    let (notifications, wrappers) = (Log<Counter>(), Log<SharedQuery<WrittenNumber.State>>())
    // It is notified before the wrapper.
    let subscription = store(["of", 1]).subscribe { event in
      guard case .stateChanged(let state) = event, state.currentValue == 7,
        let wrapper = wrappers.elements.first
      else { return }
      notifications.append(track { #expect(wrapper.wrappedValue == 7) })
      wrapper.store?.currentValue = 5
      wrapper.bind(to: other)
    }
    let wrapper = SharedQuery(WrittenNumber(path: ["of", 1]), client: client)
    wrappers.append(wrapper)
    store(["of", 1]).currentValue = 7
    #expect(wrapper.wrappedValue == 5)
    #expect(notifications.elements.map(\.count) == [1])
    subscription.cancel()
    wrappers.removeAll()
  }

  @Test("A wrapper follows the value that another one displays, also an earlier one")
  func previousOfAnother() {
    let id = SharedQuery(WrittenNumber(path: ["id"]), client: client)
    id.withLock { $0 = 1 }
    for (path, value) in [(["of", "1"], 5), (["last", "5"], 50), (["last", "6"], 60)] {
      store(OperationPath(path)).currentValue = value
    }
    let middle = SharedQuery(dependingOn: id, keepingPrevious: true) { (id: Int) in
      WrittenNumber(path: ["of", "\(id)"])
    }
    let last = SharedQuery(dependingOn: middle) { (number: Int) in
      WrittenNumber(path: ["last", "\(number)"])
    }
    #expect(last.wrappedValue == 50)
    id.withLock { $0 = 2 }
    #expect(middle.wrappedValue == 5 && middle.isPrevious)
    #expect(last.isBacked && last.wrappedValue == 50)
    store(["of", "2"]).currentValue = 6
    #expect(last.wrappedValue == 60)
    #expect(store(["last", "6"]).subscriberCount == 1)
    #expect(store(["last", "5"]).subscriberCount == 0)
  }

  @Test("A binding notifies readers at once, also while a slow handler of the new store is called")
  func slowHandler() {
    let (started, continues, ended) = (DispatchGate(), DispatchGate(), DispatchGate())
    let second = store(["other"])
    let slow = second.subscribe { event in
      guard event.state?.currentValue == 5 else { return }
      started.open()
      continues.wait()
    }
    let wrapper = SharedQuery(WrittenNumber(path: ["of", 1]), client: client)
    Thread.detachNewThread {
      second.currentValue = 5
      ended.open()
    }
    started.wait()
    let value = track { #expect(wrapper.wrappedValue == nil) }
    let isLoading = track { _ = wrapper.isLoading }
    wrapper.bind(to: other)
    #expect(wrapper.wrappedValue == 5)
    #expect(value.count == 1)
    continues.open()
    ended.wait()
    #expect(isLoading.count == 0)
    slow.cancel()
  }

  @Test("A reader of a yielded value that was undone before it was delivered is notified")
  func undoneYield() async {
    let (notifications, wrappers) = (Log<Counter>(), Log<SharedQuery<QueryState<Int, any Error>>>())
    let delivered = Door()
    let query = Query<Int, any Error>(path: ["yielding"]) { _, continuation in
      continuation.yield(7)
      delivered.open()
      throw CancellationError()
    }
    let store = client.store(for: query)
    for store in [store, self.store(["other"])] { store.currentValue = 5 }
    // It is notified before the wrapper.
    let subscription = store.subscribe { [other] event in
      guard event.state?.currentValue == 7, let wrapper = wrappers.elements.first else { return }
      notifications.append(track { #expect(wrapper.wrappedValue == 7) })
      wrapper.cancel()
      wrapper.bind(to: other)
    }
    let wrapper = SharedQuery(query, client: client)
    wrappers.append(wrapper)
    _ = try? await store.run()
    // The caller of the cancelled run continues while the value is still delivered.
    await delivered.passed()
    #expect(wrapper.wrappedValue == 5)
    #expect(notifications.elements.map(\.count) == [1])
    subscription.cancel()
    wrappers.removeAll()
  }

  @Test("A reader of a yielded value that was undone while the wrapper was being bound is notified")
  func undoneWhileBinding() async {
    let (continuations, notifications) = (
      Log<OperationContinuation<Int, any Error>>(), Log<Counter>()
    )
    let (begun, door) = (Door(), Door())
    let query = Query<Int, any Error>(path: ["yielding"]) { _, continuation in
      continuations.append(continuation)
      begun.open()
      await door.passed()
      return 9
    }
    let second = client.store(for: query)
    for store in [second, self.store(["of", 1])] { store.currentValue = 5 }
    let wrapper = SharedQuery(WrittenNumber(path: ["of", 1]), client: client)
    let run = Task { try await second.run() }
    await begun.passed()
    withObservationTracking {
      _ = wrapper.store
    } onChange: { [wrapper] in
      continuations.elements[0].yield(7)
      notifications.append(track { #expect(wrapper.wrappedValue == 7) })
      second.cancel()
    }
    wrapper.bind(to: query)
    #expect(wrapper.wrappedValue == 5)
    #expect(notifications.elements.map(\.count) == [1])
    door.open()
    _ = await run.result
    continuations.removeAll()
  }

  @Test("The deinitialiser of an earlier value that is not displayed any more may read the wrapper")
  func endOfPrevious() {
    let id = SharedQuery(WrittenNumber(path: ["id"]), client: client)
    id.withLock { $0 = 10 }
    let dependent = SharedQuery(dependingOn: id, keepingPrevious: true) { (id: Int) in
      Query<Token, any Error>(path: ["token", id / 10]) { _ in throw CancellationError() }
    }
    dependent.withLock { $0 = Token(1) { _ in } }
    id.withLock { $0 = 20 }
    let (store, reads) = (dependent.store, Counter())
    store?.withExclusiveAccess { store in
      store.currentValue = Token(2) { [unowned store] _ in
        if dependent.store === store { reads.increment() }
      }
      id.withLock { $0 = 21 }
      store.currentValue = Token(3) { _ in }
    }
    #expect(reads.count == 1)
  }
}
