import Testing

@testable import Operation

/// Turns by calling the machine.
@Suite struct SerialTurnsMachineTests {
  /// The machine behind a reference, so that an expectation can call it.
  private final class Line {
    private var machine = SerialTurnsMachine<String>()
    var isEmpty: Bool { machine.isEmpty }

    func enter(_ scope: SerialScope, _ id: OperationTaskID) { machine.enter(scope, id) }
    func wait(for scope: SerialScope, _ id: OperationTaskID, waiter: String) -> Bool {
      machine.wait(for: scope, id, waiter: waiter)
    }
    func leave(_ scope: SerialScope, _ id: OperationTaskID) -> String? { machine.leave(scope, id) }
    func end(_ scope: SerialScope, _ id: OperationTaskID) -> String? { machine.end(scope, id) }
  }

  private let ids = (0..<4).map { _ in OperationTaskID.next() }
  private let scope = SerialScope("scope")

  @Test("The first one has his turn at once, and the next when it is over")
  func line() {
    let machine = Line()
    for id in ids.prefix(3) { machine.enter(scope, id) }
    #expect(machine.wait(for: scope, ids[0], waiter: "0"))
    #expect(!machine.wait(for: scope, ids[2], waiter: "2"))
    #expect(!machine.wait(for: scope, ids[1], waiter: "1"))
    #expect(machine.end(scope, ids[0]) == "1")
    #expect(machine.end(scope, ids[1]) == "2")
    #expect(machine.end(scope, ids[2]) == nil)
    #expect(machine.isEmpty)
  }

  @Test("One whose turn comes before he waits has it at once")
  func turnBeforeWait() {
    let machine = Line()
    machine.enter(scope, ids[0])
    machine.enter(scope, ids[1])
    #expect(machine.end(scope, ids[0]) == nil)
    #expect(machine.wait(for: scope, ids[1], waiter: "1"))
    #expect(machine.end(scope, ids[1]) == nil && machine.isEmpty)
  }

  @Test("Only the one whose turn it is can end it")
  func strangerEnds() {
    let machine = Line()
    machine.enter(scope, ids[0])
    machine.enter(scope, ids[1])
    #expect(!machine.wait(for: scope, ids[1], waiter: "1"))
    #expect(machine.end(scope, ids[1]) == nil)
    #expect(machine.end(scope, ids[3]) == nil)
    #expect(machine.end(scope, ids[0]) == "1")
  }

  @Test("One who goes before his turn is passed over, and one who goes in his turn gives it on")
  func leave() {
    let machine = Line()
    for id in ids { machine.enter(scope, id) }
    #expect(!machine.wait(for: scope, ids[3], waiter: "3"))
    #expect(machine.leave(scope, ids[1]) == nil)
    #expect(machine.end(scope, ids[0]) == nil)
    #expect(machine.leave(scope, ids[2]) == "3")
    #expect(machine.end(scope, ids[3]) == nil && machine.isEmpty)
  }

  @Test("Scopes have lines of their own")
  func scopes() {
    let machine = Line()
    let other = SerialScope(1)
    machine.enter(scope, ids[0])
    machine.enter(other, ids[1])
    #expect(machine.wait(for: scope, ids[0], waiter: "0"))
    #expect(machine.wait(for: other, ids[1], waiter: "1"))
    #expect(machine.end(other, ids[0]) == nil)
    #expect(machine.end(other, ids[1]) == nil && machine.end(scope, ids[0]) == nil)
    #expect(machine.isEmpty)
  }

  @Test("A scope that is there no more goes away without the lock")
  func droppedScope() {
    let turns = SerialTurns()
    let ended = Recorder<Int>()
    func turn(_ leaves: Bool) {
      let id = OperationTaskID.next()
      func scope() -> SerialScope {
        SerialScope(
          Sentinel {
            // Would wait for ever under the lock of the turns.
            turns.enter(SerialScope("other"), id)
            turns.end(SerialScope("other"), id)
            ended.append(1)
          })
      }
      turns.enter(scope(), id)
      if leaves { turns.leave(scope(), id) } else { turns.end(scope(), id) }
    }
    turn(false)
    turn(true)
    #expect(ended.count == 4)
  }
}
