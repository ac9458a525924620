import FoundationEssentials
import Testing

@testable import Operation

/// The machine, so that expectations can call what changes it.
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

  func resume(_ entry: OutboxEntry) -> Bool { machine.resume(entry) }
  func begin(_ entry: OutboxEntry) -> Bool { machine.begin(entry) {} }
  func suspend(_ entry: OutboxEntry, as status: OutboxCall.Status) -> Bool {
    machine.update(entry) { $0.status = status }
  }
  func remove(_ entry: OutboxEntry) -> Bool { machine.remove(entry) }
  func attempts(of entry: OutboxEntry) -> Int? { machine.call(of: entry)?.attempts }
  func hasRun(_ id: String) -> Bool { machine.run(of: id)?.cancel != nil }
}

@Suite("The machine of an outbox")
struct OutboxMachineTests {
  private let machine = Driver()

  @Test("Calls are sorted by their numbers, in whatever order they are added")
  func order() {
    for number in [3, 1, 20, 2] {
      machine.add(OutboxEntry("\(number)", number: number), "\(number)")
    }
    #expect(machine.ids == ["1", "2", "3", "20"])
    #expect(OutboxEntry.number(of: OutboxEntry("x-1", number: 20).key) == 20)
    #expect(OutboxEntry.number(of: "calls/x") == nil)
  }

  @Test("A call that waits or has failed is resumed once, and begins with one more attempt")
  func resume() {
    let entry = OutboxEntry("a", number: 1)
    machine.add(entry, "a", .waiting)
    #expect(machine.waiting == ["a"])
    #expect(machine.resume(entry))
    #expect(!machine.resume(entry))
    #expect(machine.waiting.isEmpty)
    #expect(!machine.hasRun("a"))
    #expect(machine.begin(entry))
    #expect(machine.attempts(of: entry) == 2)
    #expect(machine.hasRun("a"))
    #expect(machine.suspend(entry, as: .failed("x")))
    #expect(machine.statuses == [.failed("x")])
    #expect(machine.waiting.isEmpty)
    #expect(machine.resume(entry))
  }

  @Test("A call that has ended does not change any more, and ends once")
  func ended() {
    let entry = OutboxEntry("a", number: 1)
    machine.add(entry, "a")
    #expect(machine.remove(entry))
    #expect(!machine.remove(entry))
    #expect(!machine.resume(entry))
    #expect(!machine.begin(entry))
    #expect(!machine.suspend(entry, as: .waiting))
    #expect(machine.attempts(of: entry) == nil)
    #expect(machine.ids.isEmpty)
  }
}
