import TestSupport
import Testing

@testable import SharingOperation

/// A wrapper returns the value that it read last as long as its store has not changed since.
@Suite struct RepeatedReadTests {
  private typealias State = QueryState<Int, any Error>
  private typealias Machine = BindingMachine<State>

  private let a = OperationStore.detached(query: Query(path: ["a"]) { _ in 1 }, initialValue: 1)
  private let b = OperationStore.detached(query: Query(path: ["b"]) { _ in 2 }, initialValue: 2)

  /// Reads as a wrapper does. Returns the value, and whether the store was read.
  private func read(_ machine: inout Machine) -> (value: Int?, isStoreRead: Bool) {
    if let value = machine.unchangedValue { return (value, false) }
    let (value, version) = machine.binding.versionedValue
    _ = machine.noteRead(value, version, epoch: machine.epoch)
    return (value, true)
  }

  @Test("A second read does not read the store, and a read after a change does")
  func again() {
    var machine = Machine(.store(a))
    #expect(read(&machine) == (1, true))
    #expect(read(&machine) == (1, false))
    a.currentValue = 5
    #expect(read(&machine) == (5, true))
    #expect(read(&machine) == (5, false))
  }

  @Test("A value that is out of date when it is noted is not kept")
  func late() {
    var machine = Machine(.store(a))
    let (value, version) = machine.binding.versionedValue
    a.currentValue = 5
    _ = machine.noteRead(value, version, epoch: 0)
    let kept = machine.takeLastRead()
    #expect(kept == nil)
    #expect(read(&machine) == (5, true))
  }

  @Test("A value of an earlier binding is not kept")
  func earlierBinding() {
    var machine = Machine(.store(a))
    let ((value, version), epoch) = (machine.binding.versionedValue, machine.epoch)
    #expect(a.versionedState.version == b.versionedState.version)
    _ = machine.bind(to: .store(b))
    _ = machine.noteRead(value, version, epoch: epoch)
    #expect(read(&machine) == (2, true))
  }

  @Test("The value of an earlier request is not kept, also if the store has no value again")
  func droppedPrevious() {
    let empty = OperationStore.detached(query: Query(path: ["c"]) { _ in 3 })
    var machine = Machine(.store(empty, previous: .init(State(initialValue: 1))))
    let binding = machine.binding
    let (value, version) = binding.versionedValue
    #expect(value == 1 && version == nil)
    empty.currentValue = 3
    _ = machine.receive(empty.state, epoch: 0)
    empty.resetState()
    _ = machine.receive(empty.state, epoch: 0)
    #expect(binding.currentValue == nil)
    _ = machine.noteRead(value, version, epoch: 0)
    #expect(read(&machine) == (nil, true))
  }

  @Test("A binding to another store, and the end, return the value that was read last")
  func forget() {
    var machine = Machine(.store(a))
    _ = read(&machine)
    let replacement = machine.bind(to: .store(b))
    #expect(replacement?.lastRead?.value == 1)
    // Both stores have had as many changes.
    #expect(read(&machine) == (2, true))
    _ = machine.end()
    let last = machine.takeLastRead()
    #expect(last?.value == 2)
    #expect(read(&machine).isStoreRead)
    #expect(read(&machine).isStoreRead)
  }

  @Test("A value without a store is never kept, nor one during exclusive access")
  func unversioned() {
    var machine = Machine(.unbacked(State(initialValue: 3)))
    #expect(read(&machine) == (3, true))
    #expect(read(&machine) == (3, true))
    _ = machine.bind(to: .store(a))
    _ = read(&machine)
    a.withExclusiveAccess {
      #expect(read(&machine) == (1, true))
      a.currentValue = 6
      #expect(read(&machine) == (6, true))
    }
    #expect(read(&machine) == (6, true))
    #expect(read(&machine) == (6, false))
  }

  @Test("The owner of exclusive access reads its changes, and an edit is read while it is pending")
  func accessAndEdits() async {
    let wrapper = SharedQuery(a)
    #expect(wrapper.wrappedValue == 1)
    a.withExclusiveAccess {
      a.currentValue = 2
      #expect(wrapper.wrappedValue == 2)
    }
    #expect(wrapper.wrappedValue == 2)
    await a.optimistically {
      $0 = 7
    } while: {
      #expect(wrapper.wrappedValue == 7)
      a.currentValue = 3
      #expect(wrapper.wrappedValue == 7)
    }
    #expect(wrapper.wrappedValue == a.currentValue)
  }

  private final class Item: Sendable {
    let onRelease: @Sendable () -> Void
    init(onRelease: @escaping @Sendable () -> Void = {}) { self.onRelease = onRelease }
    deinit { onRelease() }
  }

  @Test("A wrapper does not retain a value that it has read, after the store has another one")
  func release() {
    let store = OperationStore.detached(
      query: Query<Item, any Error>(path: ["item"]) { _ in Item() })
    let other = OperationStore.detached(
      query: Query<Item, any Error>(path: ["other"]) { _ in Item() })
    let wrapper = SharedQuery(store)
    weak var item: Item?
    for end in [
      { store.currentValue = nil }, { store.resetState() },
      {
        wrapper.core.bind(to: .store(other)); store.resetState()
      },
    ] {
      do {
        let new = Item()
        (store.currentValue, item) = (new, new)
      }
      #expect(wrapper.wrappedValue === item && item != nil)
      end()
      #expect(item == nil)
    }
  }

  @Test("The deinitialiser of a value that was read may read and write through the wrapper")
  func deinitialiser() {
    let store = OperationStore.detached(
      query: Query<Item, any Error>(path: ["item"]) { _ in Item() })
    let wrapper = SharedQuery(store)
    let reads = Tape<Bool>()
    store.currentValue = Item { [unowned store] in
      reads.note(wrapper.wrappedValue == nil)
      store.currentValue = Item()
      reads.note(wrapper.wrappedValue == nil)
    }
    #expect(wrapper.wrappedValue != nil)
    store.currentValue = nil
    #expect(reads.take() == [true, false])
  }

  @Test("Readers beside writers read values in their order, and each writer reads its own")
  func race() async {
    let wrapper = SharedQuery(a)
    a.currentValue = 0
    await withTaskGroup { group in
      for _ in 0..<3 {
        group.addTask {
          var last = 0
          while last < 2_000 {
            let value = wrapper.wrappedValue ?? -1
            if value < last { Issue.record("\(value) was read after \(last)") }
            last = max(last, value)
            await Task.yield()
          }
        }
      }
      group.addTask {
        for number in 1...2_000 {
          wrapper.projectedValue.withLock { $0 = number }
          if wrapper.wrappedValue != number { Issue.record("\(number) was not read") }
          await Task.yield()
        }
      }
    }
  }
}
