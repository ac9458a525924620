import Testing

@testable import SharingOperation

@Suite struct BindingMachineEvents {
  typealias State = QueryState<Int, any Error>
  typealias Machine = BindingMachine<State>

  let a = OperationStore.detached(query: Query(path: ["a"]) { _ in 1 }, initialValue: 1)
  let b = OperationStore.detached(query: Query(path: ["b"]) { _ in 2 }, initialValue: 2)

  func state(_ value: Int?) -> State { State(initialValue: value) }

  func values(_ changes: [StateChange<State>]) -> [[Int?]] {
    changes.map { [$0.old.currentValue, $0.new.currentValue] }
  }

  @Test("A new binding begins an epoch, and returns the replaced store and its subscription")
  func bind() throws {
    var machine = Machine(.store(a))
    let cancelled = Counter()
    let early = machine.setSubscription(.init { cancelled.increment() }, epoch: 0)
    #expect(early == nil)
    let bound = machine.bind(to: .store(b))
    let replacement = try #require(bound)
    #expect(replacement.epoch == 1)
    #expect(replacement.replaced.store === a)
    #expect(machine.binding.store === b)
    replacement.subscription?.cancel()
    #expect(cancelled.count == 1)
  }

  @Test("A binding to the same store, or to none again, changes nothing")
  func same() {
    var machine = Machine(.store(a))
    let again = machine.bind(to: .store(a))
    #expect(again == nil)
    let unbound = machine.bind(to: .unbacked(state(nil)))
    #expect(unbound != nil)
    let stillUnbound = machine.bind(to: .unbacked(state(nil)))
    #expect(stillUnbound == nil)
    let back = machine.bind(to: .store(a))
    #expect(back != nil)
    #expect(machine.epoch == 2)
  }

  @Test("A state returns the change from the one before, within one store")
  func receive() {
    var machine = Machine(.store(a))
    let first = machine.receive(state(5), epoch: 0)
    let second = machine.receive(state(6), epoch: 0)
    #expect(values(first) == [[1, 5]])
    #expect(values(second) == [[5, 6]])
    #expect((first + second).map(\.isSameStore) == [true, true])
  }

  @Test("Only the first state after a binding returns a change between two stores")
  func receiveAfterBinding() {
    var machine = Machine(.store(a))
    _ = machine.bind(to: .store(b))
    let first = machine.receive(state(2), epoch: 1)
    let second = machine.receive(state(3), epoch: 1)
    #expect(values(first) == [[1, 2]])
    #expect(first.map(\.isSameStore) == [false])
    #expect(second.map(\.isSameStore) == [true])
  }

  @Test("A state of an earlier epoch returns no change")
  func lateState() {
    var machine = Machine(.store(a))
    _ = machine.bind(to: .store(b))
    let dropped = machine.receive(state(9), epoch: 0)
    #expect(dropped.isEmpty)
    let taken = machine.receive(state(2), epoch: 1)
    #expect(values(taken) == [[1, 2]])
  }

  @Test("A state that readers may have read during a binding returns a change of its own, once")
  func readStates() {
    var machine = Machine(.store(a))
    machine.addReadStates([.init(state(8))])
    let without = machine.receive(state(1), epoch: 0)
    #expect(values(without) == [[1, 1]])
    _ = machine.bind(to: .store(b))
    machine.addReadStates([.init(state(9))])
    let with = machine.receive(state(1), epoch: 1)
    #expect(values(with) == [[1, 1], [9, 1]])
    let after = machine.receive(state(1), epoch: 1)
    #expect(values(after) == [[1, 1]])
  }

  @Test("Two bindings without a state between return the changes of both")
  func bindTwice() {
    var machine = Machine(.store(a))
    _ = machine.bind(to: .store(b))
    machine.addReadStates([.init(state(8))])
    _ = machine.bind(to: .unbacked(state(nil)))
    machine.addReadStates([.init(state(9))])
    let changes = machine.receive(state(nil), epoch: 2)
    #expect(values(changes) == [[1, nil], [8, nil], [9, nil]])
    #expect(changes.allSatisfy { !$0.isSameStore })
  }

  func made(_ store: OperationStore<State>, source: Int, number: Int) -> MadeBinding<State> {
    let source = BindingSource(
      store: nil, version: source, value: source, updateCount: source, date: nil)
    return MadeBinding(source: source, binding: .store(store), number: number)
  }

  @Test("A binding is refused if another one was made since its maker began")
  func lateMade() {
    var machine = Machine(.unbacked(state(nil)))
    let (older, newer) = (made(a, source: 1, number: 1), made(b, source: 2, number: 1))
    let none = machine.make(newer)
    #expect(none == nil)
    let refused = machine.make(older)
    #expect(refused?.binding.store === a)
    #expect(machine.made?.binding.store === b)
    let replacement = machine.bind(to: newer.binding)
    #expect(replacement != nil)
    let replaced = machine.make(made(a, source: 3, number: 2))
    #expect(replaced?.binding.store === b)
  }

  @Test(
    "An equal source is not noted if another binding was made since, also one of the same store")
  func lateEqualSource() {
    var machine = Machine(.unbacked(state(nil)))
    let first = made(a, source: 1, number: 1)
    _ = machine.make(first)
    let old = machine.update(first, made(a, source: 2, number: 1).source)
    #expect(old?.version == 1)
    _ = machine.make(made(a, source: 4, number: 2))
    let none = machine.update(first, made(a, source: 3, number: 1).source)
    #expect(none == nil)
    #expect(machine.made?.source.version == 4)
  }

  @Test("A binding after a timer is refused if an explicit one has followed the timer")
  func timers() {
    var machine = Machine(.unbacked(state(nil)))
    let (first, second) = (LateSubscription(), LateSubscription())
    let none = machine.setTimer(first)
    let replaced = machine.setTimer(second)
    #expect(none == nil && replaced === first)
    let refused = machine.override(with: .store(a), after: first)
    #expect(refused.replacement == nil && refused.timer == nil)
    let due = machine.override(with: .store(b), after: second)
    #expect(due.replacement?.binding.store === b && due.timer === second)
    _ = machine.setTimer(first)
    let atOnce = machine.override(with: .store(a), after: nil)
    #expect(atOnce.replacement?.binding.store === a && atOnce.timer === first)
    let late = machine.override(with: .store(b), after: first)
    #expect(late.replacement == nil && machine.binding.store === a)
    _ = machine.setTimer(second)
    let end = machine.end()
    #expect(end.2 === second)
  }

  @Test("A subscription of an earlier epoch, or after the end, is returned")
  func lateSubscription() {
    var machine = Machine(.store(a))
    _ = machine.bind(to: .store(b))
    let late = OperationSubscription {}
    let returned = machine.setSubscription(late, epoch: 0)
    #expect(returned == late)
    let present = OperationSubscription {}
    let kept = machine.setSubscription(present, epoch: 1)
    #expect(kept == nil)
    let taken = machine.end().subscription
    #expect(taken == present)
    let tooLate = machine.setSubscription(late, epoch: 1)
    #expect(tooLate == late)
  }

  @Test("After the end, nothing is bound and no state is received")
  func ended() {
    var machine = Machine(.store(a))
    #expect(machine.isCurrent(0))
    let subscription = machine.end().subscription
    #expect(subscription == nil)
    #expect(!machine.isCurrent(0))
    let replacement = machine.bind(to: .store(b))
    #expect(replacement == nil)
    #expect(machine.binding.store === a)
    let changes = machine.receive(state(5), epoch: 0)
    #expect(changes.isEmpty)
  }
}
