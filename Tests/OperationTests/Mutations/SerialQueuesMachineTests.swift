import Testing

@testable import Operation

/// Turns by calling the machine.
@Suite struct SerialQueuesMachineTests {
  /// The machine behind a reference, so that an expectation can call it.
  private final class Line {
    private var machine = SerialQueuesMachine<String>()
    var isEmpty: Bool { machine.isEmpty }

    func append(_ id: OperationTaskID, to scope: SerialScope) { machine.append(id, to: scope) }
    func wait(for id: OperationTaskID, in scope: SerialScope, waiter: String) -> Bool {
      let continuing = machine.wait(for: id, in: scope, waiter: waiter)
      #expect(continuing == nil || continuing == waiter)
      return continuing != nil
    }
    func remove(_ id: OperationTaskID, from scope: SerialScope) -> String? {
      let departure = machine.remove(id, from: scope)
      return [departure.own, departure.next].compactMap(\.self).first
    }
  }

  private let ids = (0..<4).map { _ in OperationTaskID.next() }
  private let scope = SerialScope("scope")

  @Test("The first one has his turn at once, and the next when it is over")
  func line() {
    let machine = Line()
    for id in ids.prefix(3) { machine.append(id, to: scope) }
    #expect(machine.wait(for: ids[0], in: scope, waiter: "0"))
    #expect(!machine.wait(for: ids[2], in: scope, waiter: "2"))
    #expect(!machine.wait(for: ids[1], in: scope, waiter: "1"))
    #expect(machine.remove(ids[0], from: scope) == "1")
    #expect(machine.remove(ids[1], from: scope) == "2")
    #expect(machine.remove(ids[2], from: scope) == nil)
    #expect(machine.isEmpty)
  }

  @Test("One whose turn comes before he waits has it at once")
  func turnBeforeWait() {
    let machine = Line()
    machine.append(ids[0], to: scope)
    machine.append(ids[1], to: scope)
    #expect(machine.remove(ids[0], from: scope) == nil)
    #expect(machine.wait(for: ids[1], in: scope, waiter: "1"))
    #expect(machine.remove(ids[1], from: scope) == nil && machine.isEmpty)
  }

  @Test("A run that waits leaves the queue at once, and nothing of it is left")
  func leavesWhileWaiting() {
    let machine = Line()
    for id in ids.prefix(3) { machine.append(id, to: scope) }
    #expect(!machine.wait(for: ids[1], in: scope, waiter: "1"))
    #expect(!machine.wait(for: ids[2], in: scope, waiter: "2"))
    #expect(machine.remove(ids[1], from: scope) == "1")
    #expect(machine.remove(ids[1], from: scope) == nil)
    #expect(machine.remove(ids[3], from: scope) == nil)
    #expect(machine.wait(for: ids[1], in: scope, waiter: "1"))
    #expect(machine.remove(ids[0], from: scope) == "2")
    #expect(machine.remove(ids[2], from: scope) == nil && machine.isEmpty)
  }

  @Test("One who goes before his turn is passed over, and one who goes in his turn gives it on")
  func leave() {
    let machine = Line()
    for id in ids { machine.append(id, to: scope) }
    #expect(!machine.wait(for: ids[3], in: scope, waiter: "3"))
    #expect(machine.remove(ids[1], from: scope) == nil)
    #expect(machine.remove(ids[0], from: scope) == nil)
    #expect(machine.remove(ids[2], from: scope) == "3")
    #expect(machine.remove(ids[3], from: scope) == nil && machine.isEmpty)
  }

  @Test("A launch that waits continues when a later one of its run waits")
  func relaunch() {
    var machine = SerialQueuesMachine<String>()
    for id in ids.prefix(2) { machine.append(id, to: scope) }
    let (first, second) = (
      machine.wait(for: ids[1], in: scope, waiter: "first"),
      machine.wait(for: ids[1], in: scope, waiter: "second")
    )
    #expect(first == nil && second == "first")
    #expect(machine.remove(ids[0], from: scope).next == "second")
  }

  @Test("Scopes have lines of their own")
  func scopes() {
    let machine = Line()
    let other = SerialScope(1)
    machine.append(ids[0], to: scope)
    machine.append(ids[1], to: other)
    #expect(machine.wait(for: ids[0], in: scope, waiter: "0"))
    #expect(machine.wait(for: ids[1], in: other, waiter: "1"))
    #expect(machine.remove(ids[0], from: other) == nil)
    #expect(machine.remove(ids[1], from: other) == nil)
    #expect(machine.remove(ids[0], from: scope) == nil)
    #expect(machine.isEmpty)
  }

  @Test("A scope that is there no more goes away without the lock")
  func droppedScope() {
    let queues = SerialQueues()
    let ended = Recorder<Int>()
    func turn() {
      let id = OperationTaskID.next()
      func scope() -> SerialScope {
        SerialScope(
          Sentinel {
            // Would wait for ever under the lock of the queues.
            queues.append(id, to: SerialScope("other"))
            queues.remove(id, from: SerialScope("other"))
            ended.append(1)
          })
      }
      queues.append(id, to: scope())
      queues.remove(id, from: scope())
    }
    turn()
    turn()
    #expect(ended.count == 4)
  }
}
