import Testing

@testable import Operation

/// Calls of the machine of serial queues.
@Suite struct SerialQueuesMachineTests {
  /// The machine behind a reference, so that an expectation can call it.
  private final class Queue {
    private var machine = SerialQueuesMachine<String>()
    var isEmpty: Bool { machine.isEmpty }

    func append(_ run: TaskNode, to scope: SerialScope) { machine.append(run, to: scope) }
    func wait(for id: OperationTaskID, in scope: SerialScope, waiter: String) -> Bool {
      let continuing = machine.wait(for: id, in: scope, waiter: waiter)
      #expect(continuing == nil || continuing == waiter)
      return continuing != nil
    }
    func remove(_ id: OperationTaskID, from scope: SerialScope) -> String? {
      let departure = machine.remove(id, from: scope)
      #expect(departure.next.count <= 1)
      return departure.own ?? departure.next.first
    }
  }

  private let runs = (0..<4).map { _ in TaskNode() }
  private var ids: [OperationTaskID] { runs.map(\.id) }
  private let scope = SerialScope("scope")

  @Test("The first run is current at once, and the next one when the first one is removed")
  func order() {
    let machine = Queue()
    for run in runs.prefix(3) { machine.append(run, to: scope) }
    #expect(machine.wait(for: ids[0], in: scope, waiter: "0"))
    #expect(!machine.wait(for: ids[2], in: scope, waiter: "2"))
    #expect(!machine.wait(for: ids[1], in: scope, waiter: "1"))
    #expect(machine.remove(ids[0], from: scope) == "1")
    #expect(machine.remove(ids[1], from: scope) == "2")
    #expect(machine.remove(ids[2], from: scope) == nil)
    #expect(machine.isEmpty)
  }

  @Test("A run that is current before it waits continues at once")
  func currentBeforeWait() {
    let machine = Queue()
    machine.append(runs[0], to: scope)
    machine.append(runs[1], to: scope)
    #expect(machine.remove(ids[0], from: scope) == nil)
    #expect(machine.wait(for: ids[1], in: scope, waiter: "1"))
    #expect(machine.remove(ids[1], from: scope) == nil && machine.isEmpty)
  }

  @Test("A run that waits is removed from the queue at once, and nothing of it is left")
  func removedWhileWaiting() {
    let machine = Queue()
    for run in runs.prefix(3) { machine.append(run, to: scope) }
    #expect(!machine.wait(for: ids[1], in: scope, waiter: "1"))
    #expect(!machine.wait(for: ids[2], in: scope, waiter: "2"))
    #expect(machine.remove(ids[1], from: scope) == "1")
    #expect(machine.remove(ids[1], from: scope) == nil)
    #expect(machine.remove(ids[3], from: scope) == nil)
    #expect(machine.wait(for: ids[1], in: scope, waiter: "1"))
    #expect(machine.remove(ids[0], from: scope) == "2")
    #expect(machine.remove(ids[2], from: scope) == nil && machine.isEmpty)
  }

  @Test("A removed run is skipped, and the next one continues when the current one is removed")
  func removed() {
    let machine = Queue()
    for run in runs { machine.append(run, to: scope) }
    #expect(!machine.wait(for: ids[3], in: scope, waiter: "3"))
    #expect(machine.remove(ids[1], from: scope) == nil)
    #expect(machine.remove(ids[0], from: scope) == nil)
    #expect(machine.remove(ids[2], from: scope) == "3")
    #expect(machine.remove(ids[3], from: scope) == nil && machine.isEmpty)
  }

  @Test("A launch that waits continues when a later one of its run waits")
  func relaunch() {
    var machine = SerialQueuesMachine<String>()
    for run in runs.prefix(2) { machine.append(run, to: scope) }
    let (first, second) = (
      machine.wait(for: ids[1], in: scope, waiter: "first"),
      machine.wait(for: ids[1], in: scope, waiter: "second")
    )
    #expect(first == nil && second == "first")
    #expect(machine.remove(ids[0], from: scope).next == ["second"])
  }

  @Test("Each scope has its own queue")
  func scopes() {
    let machine = Queue()
    let other = SerialScope(1)
    machine.append(runs[0], to: scope)
    machine.append(runs[1], to: other)
    #expect(machine.wait(for: ids[0], in: scope, waiter: "0"))
    #expect(machine.wait(for: ids[1], in: other, waiter: "1"))
    #expect(machine.remove(ids[0], from: other) == nil)
    #expect(machine.remove(ids[1], from: other) == nil)
    #expect(machine.remove(ids[0], from: scope) == nil)
    #expect(machine.isEmpty)
  }

  @Test("A scope that is no longer in use is released without the lock")
  func droppedScope() {
    let queues = SerialQueues()
    let ended = Recorder<Int>()
    func appendAndRemove() {
      let run = TaskNode()
      func scope() -> SerialScope {
        SerialScope(
          Sentinel {
            // Would deadlock under the lock of the queues.
            queues.append(run, to: SerialScope("other"))
            queues.remove(run.id, from: SerialScope("other"))
            ended.append(1)
          })
      }
      queues.append(run, to: scope())
      queues.remove(run.id, from: scope())
    }
    appendAndRemove()
    appendAndRemove()
    #expect(ended.count == 4)
  }
}
