import FoundationEssentials
import Testing

@testable import Operation

/// A class around the machine, so that expectations can call mutating functions.
private final class Driver {
  private var machine = OutboxMachine()

  var ids: [String] { machine.calls.map(\.id) }
  var statuses: [OutboxCall.Status] { machine.calls.map(\.status) }
  var waiting: [String] { machine.waiting.map { $0.1.id } }

  func add(_ entry: OutboxEntry, _ id: String, _ status: OutboxCall.Status = .running) {
    machine.add(
      entry,
      OutboxCall(
        id: id, mutation: "m", arguments: Data(), version: 0, date: Date(timeIntervalSince1970: 0),
        attempts: 1, status: status))
  }

  func resume(_ entry: OutboxEntry, isRetry: Bool = true) -> Int? {
    machine.resume(entry, isRetry: isRetry)?.resumption
  }
  func begin(
    _ entry: OutboxEntry, _ run: OperationTaskID = .next(), resumption: Int = 1
  ) -> Bool {
    machine.begin(ResumedCall(entry: entry, resumption: resumption), .init(id: run) {})
  }
  func suspend(_ entry: OutboxEntry, as status: OutboxCall.Status, by run: OperationTaskID) {
    machine.suspend(entry, as: status, by: run)
  }
  func end(_ entry: OutboxEntry, by run: OperationTaskID? = nil) -> Bool {
    machine.end(entry, by: run)
  }
  func drop(_ entry: OutboxEntry) -> Bool { machine.drop(entry) != nil }
  func contains(_ entry: OutboxEntry) -> Bool { machine.contains(entry) }
  func suspendIfIdle(_ entry: OutboxEntry, _ resumption: Int) {
    machine.suspendIfIdle(ResumedCall(entry: entry, resumption: resumption))
  }
  func attempts(of entry: OutboxEntry) -> Int? { machine.call(of: entry)?.attempts }
}

@Suite("The machine of an outbox")
struct OutboxMachineTests {
  private let machine = Driver()

  @Test("Calls are sorted by their numbers, in any order of addition")
  func order() {
    for number in [3, 1, 20, 2] {
      machine.add(OutboxEntry("\(number)", number: number), "\(number)")
    }
    #expect(machine.ids == ["1", "2", "3", "20"])
    let entry = OutboxEntry("3", number: 3)
    #expect(machine.end(entry))
    #expect(machine.ids == ["1", "2", "20"])
    for _ in 0..<2 { machine.add(entry, "3") }
    #expect(machine.ids == ["1", "2", "3", "20"])
    #expect(OutboxEntry.number(of: OutboxEntry("x-1", number: 20).key) == 20)
    #expect(OutboxEntry.number(of: "calls/x") == nil)
  }

  @Test("A call that waits or has failed is resumed once, and begins with one more attempt")
  func resume() {
    let entry = OutboxEntry("a", number: 1)
    machine.add(entry, "a", .waiting)
    #expect(machine.waiting == ["a"])
    #expect(machine.resume(entry) == 1)
    #expect(machine.resume(entry) == nil)
    #expect(machine.waiting.isEmpty)
    let run = OperationTaskID.next()
    #expect(machine.begin(entry, run))
    #expect(machine.attempts(of: entry) == 2)
    machine.suspend(entry, as: .failed("x"), by: run)
    #expect(machine.statuses == [.failed("x")])
    #expect(machine.waiting.isEmpty)
    #expect(machine.resume(entry, isRetry: false) == nil)
    #expect(machine.resume(entry) == 2)
  }

  @Test("A report of an earlier run or resumption of a call does not change the current one")
  func replaced() {
    let entry = OutboxEntry("a", number: 1)
    let (first, second) = (OperationTaskID.next(), OperationTaskID.next())
    machine.add(entry, "a", .waiting)
    #expect(machine.resume(entry) == 1)
    #expect(machine.begin(entry, first))
    machine.suspend(entry, as: .failed("x"), by: first)
    #expect(machine.resume(entry) == 2)
    machine.suspendIfIdle(entry, 1)
    machine.suspend(entry, as: .waiting, by: first)
    #expect(!machine.end(entry, by: first))
    #expect(machine.statuses == [.running])
    #expect(machine.begin(entry, second, resumption: 2))
    #expect(!machine.begin(entry, first), "the first resumption has ended")
    #expect(!machine.end(entry, by: first))
    #expect(machine.end(entry, by: second))
  }

  @Test("A call that has ended does not change any more, and ends once")
  func ended() {
    let entry = OutboxEntry("a", number: 1)
    machine.add(entry, "a", .waiting)
    #expect(machine.resume(entry) == 1)
    #expect(machine.begin(entry))
    #expect(machine.end(entry))
    #expect(machine.contains(entry), "the call is contained until it is dropped")
    #expect(!machine.end(entry))
    #expect(machine.resume(entry) == nil)
    #expect(!machine.begin(entry))
    #expect(machine.attempts(of: entry) == nil)
    #expect(machine.ids.isEmpty)
    #expect(machine.drop(entry), "the call returns what cancels its run")
    #expect(!machine.contains(entry))
    #expect(!machine.drop(entry))
  }

  @Test("A call that begins after its resumption has returned runs, and is not resumed meanwhile")
  func late() {
    let entry = OutboxEntry("a", number: 1)
    machine.add(entry, "a", .waiting)
    #expect(machine.resume(entry) == 1)
    machine.suspendIfIdle(entry, 1)
    #expect(machine.begin(entry))
    #expect(machine.statuses == [.running])
    #expect(machine.resume(entry) == nil)
  }

  @Test("A resumed call whose run has not begun waits again, and a running call does not")
  func idle() {
    let (idle, begun) = (OutboxEntry("a", number: 1), OutboxEntry("b", number: 2))
    for (entry, id) in [(idle, "a"), (begun, "b")] {
      machine.add(entry, id, .waiting)
      #expect(machine.resume(entry) == 1)
    }
    #expect(machine.begin(begun))
    machine.suspendIfIdle(idle, 1)
    machine.suspendIfIdle(begun, 1)
    #expect(machine.statuses == [.waiting, .running])
  }
}
