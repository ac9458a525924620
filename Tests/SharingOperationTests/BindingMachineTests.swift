import Testing

@testable import SharingOperation

@Suite struct BindingMachineEvents {
  typealias State = QueryState<Int, any Error>
  typealias Machine = BindingMachine<State>

  let a = OperationStore.detached(query: Query(path: ["a"]) { _ in 1 }, initialValue: 1)
  let b = OperationStore.detached(query: Query(path: ["b"]) { _ in 2 }, initialValue: 2)

  func state(_ value: Int?) -> State { State(initialValue: value) }

  func values(_ steps: [StateStep<State>]) -> [[Int?]] {
    steps.map { [$0.old.currentValue, $0.new.currentValue] }
  }

  @Test("A binding to something else begins an epoch, and gives up what was there")
  func bind() throws {
    var machine = Machine(.store(a))
    let cancelled = Counter()
    let early = machine.setSubscription(.init { cancelled.increment() }, epoch: 0)
    #expect(early == nil)
    let bound = machine.bind(.store(b))
    let change = try #require(bound)
    #expect(change.epoch == 1)
    #expect(change.left.store === a)
    #expect(machine.binding.store === b)
    change.subscription?.cancel()
    #expect(cancelled.count == 1)
  }

  @Test("A binding to what is there is none")
  func same() {
    var machine = Machine(.store(a))
    let again = machine.bind(.store(a))
    #expect(again == nil)
    let unbound = machine.bind(.none(state(nil)))
    #expect(unbound != nil)
    let stillUnbound = machine.bind(.none(state(nil)))
    #expect(stillUnbound == nil)
    let back = machine.bind(.store(a))
    #expect(back != nil)
    #expect(machine.epoch == 2)
  }

  @Test("A state gives the step from the one before, of one store")
  func receive() {
    var machine = Machine(.store(a))
    let first = machine.receive(state(5), epoch: 0)
    let second = machine.receive(state(6), epoch: 0)
    #expect(values(first) == [[1, 5]])
    #expect(values(second) == [[5, 6]])
    #expect((first + second).map(\.isSameStore) == [true, true])
  }

  @Test("The first state after a binding gives a step between two stores, later ones do not")
  func receiveAfterBinding() {
    var machine = Machine(.store(a))
    _ = machine.bind(.store(b))
    let first = machine.receive(state(2), epoch: 1)
    let second = machine.receive(state(3), epoch: 1)
    #expect(values(first) == [[1, 2]])
    #expect(first.map(\.isSameStore) == [false])
    #expect(second.map(\.isSameStore) == [true])
  }

  @Test("A state of an earlier epoch gives no step")
  func lateState() {
    var machine = Machine(.store(a))
    _ = machine.bind(.store(b))
    let dropped = machine.receive(state(9), epoch: 0)
    #expect(dropped.isEmpty)
    let taken = machine.receive(state(2), epoch: 1)
    #expect(values(taken) == [[1, 2]])
  }

  @Test("What readers glimpsed around a binding gives steps of its own, once")
  func glimpse() {
    var machine = Machine(.store(a))
    machine.glimpse([state(8)])
    let without = machine.receive(state(1), epoch: 0)
    #expect(values(without) == [[1, 1]])
    _ = machine.bind(.store(b))
    machine.glimpse([state(9)])
    let with = machine.receive(state(1), epoch: 1)
    #expect(values(with) == [[1, 1], [9, 1]])
    let after = machine.receive(state(1), epoch: 1)
    #expect(values(after) == [[1, 1]])
  }

  @Test("A subscription that comes after its epoch, or after the end, is given back")
  func lateSubscription() {
    var machine = Machine(.store(a))
    _ = machine.bind(.store(b))
    let late = OperationSubscription {}
    let returned = machine.setSubscription(late, epoch: 0)
    #expect(returned == late)
    let present = OperationSubscription {}
    let kept = machine.setSubscription(present, epoch: 1)
    #expect(kept == nil)
    let given = machine.retire()
    #expect(given == present)
    let tooLate = machine.setSubscription(late, epoch: 1)
    #expect(tooLate == late)
  }

  @Test("When the wrapper is gone nothing is bound any more")
  func retired() {
    var machine = Machine(.store(a))
    let subscription = machine.retire()
    #expect(subscription == nil)
    let change = machine.bind(.store(b))
    #expect(change == nil)
    #expect(machine.binding.store === a)
  }
}
