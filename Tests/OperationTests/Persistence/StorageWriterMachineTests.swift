import FoundationEssentials
import Testing

@testable import Operation

private final class Note: Sendable {
  private let key: String
  private let ownerItem: Note?

  init(_ key: String, of owner: Note? = nil) {
    self.key = key
    ownerItem = owner
  }

  var owner: ObjectIdentifier { ObjectIdentifier(ownerItem ?? self) }

  /// The item, which its change identifies.
  var item: SavedItem {
    SavedItem(key: key, owner: owner) { [self] in SavedChange(entry: entry) }
  }

  private var entry: StorageEntry {
    StorageEntry(
      version: ObjectIdentifier(self).hashValue, date: Date(timeIntervalSince1970: 0), data: Data())
  }

  func isIn(_ items: [SavedItem]) -> Bool { items.contains { $0.takeChange()?.entry == entry } }
}

/// A class around the machine, so that expectations can call mutating functions.
private final class Driver {
  private var machine = StorageWriterMachine(delay: .seconds(1))

  var phase: StorageWriterMachine.Phase { machine.phase }
  var writtenCount: Int { machine.writtenCount }

  func note(_ item: Note) -> Duration? { machine.note(item.item).delay }
  func remove(_ key: String, isPrefix: Bool = false) {
    _ = machine.remove(key, isPrefix: isPrefix)
  }
  func isRemoved(_ key: String) -> Bool { machine.isRemoved(key) }
  func isPending(_ key: String, besides owner: ObjectIdentifier?) -> Bool {
    machine.isPending(key, besides: owner)
  }
  func addTimer(_ timer: OperationSubscription) -> OperationSubscription? {
    machine.addTimer(timer)
  }
  func timerEnded() -> StorageWriterMachine.Batch? { machine.timerEnded() }
  func flush() -> StorageWriterMachine.Batch? { machine.flush() }
  func outcome(of count: Int, since round: Int) -> StorageWriterMachine.Outcome? {
    machine.outcome(of: count, since: round)
  }
  func end(_ batch: StorageWriterMachine.Batch, isSuccess: Bool) -> Duration? {
    machine.end(batch, isSuccess: isSuccess)
  }
}

@Suite("The machine of a storage writer")
struct StorageWriterMachineTests {
  private let machine = Driver()

  @Test("Equal removals are made once")
  func equalRemovals() throws {
    for _ in 0..<3 {
      machine.remove("a", isPrefix: true)
      machine.remove("a")
    }
    machine.remove("b", isPrefix: true)
    let changes = try #require(machine.flush()).changes
    #expect(changes.removedKeys == ["a"] && changes.removedPrefixes == ["a", "b"])
  }

  @Test("The first change starts a timer, and a batch has the newest item of each key")
  func batch() throws {
    let owner = Note("a")
    let newer = Note("a", of: owner)
    #expect(machine.note(owner) == .seconds(1))
    #expect(machine.note(newer) == nil)
    #expect(machine.note(Note("b")) == nil)
    let batch = try #require(machine.timerEnded())
    #expect(batch.changes.items.count == 2)
    #expect(newer.isIn(batch.changes.items))
    #expect(machine.phase == .writing)
    #expect(machine.writtenCount == 0)
    #expect(machine.end(batch, isSuccess: true) == nil)
    #expect(machine.phase == .idle)
    #expect(machine.writtenCount == 3)
  }

  @Test("A flush writes at once, and its timer does nothing")
  func flush() throws {
    #expect(machine.flush() == nil)
    _ = machine.note(Note("a"))
    #expect(machine.flush() != nil)
    #expect(machine.timerEnded() == nil)
    #expect(machine.flush() == nil)
  }

  @Test("A flush during a batch that fails has the next one written at once")
  func flushDuringFailure() throws {
    _ = machine.note(Note("a"))
    let batch = try #require(machine.timerEnded())
    _ = machine.note(Note("b"))
    #expect(machine.flush() == nil)
    #expect(machine.end(batch, isSuccess: false) == .zero)
  }

  @Test("Changes are written, or a batch with them has failed since a round")
  func outcomes() throws {
    _ = machine.note(Note("a"))
    #expect(machine.outcome(of: 1, since: 0) == nil)
    _ = machine.end(try #require(machine.timerEnded()), isSuccess: false)
    #expect(machine.outcome(of: 1, since: 0) == .failed)
    // A flush that begins now waits for the next batch.
    #expect(machine.outcome(of: 1, since: 1) == nil)
    #expect(machine.outcome(of: 2, since: 0) == nil)
    _ = machine.end(try #require(machine.timerEnded()), isSuccess: true)
    #expect(machine.outcome(of: 1, since: 0) == .written)
  }

  @Test(
    "What is removed while it is written is waited for until the next batch",
    arguments: [false, true])
  func removedWhileWritten(isPrefix: Bool) throws {
    _ = machine.note(Note("values/a/1"))
    let batch = try #require(machine.flush())
    machine.remove(isPrefix ? "values/a" : "values/a/1", isPrefix: isPrefix)
    // The batch may not have the change any more, and does not have the removal.
    #expect(machine.end(batch, isSuccess: true) == .zero)
    #expect(machine.outcome(of: 1, since: 0) == nil)
    _ = machine.end(try #require(machine.timerEnded()), isSuccess: true)
    #expect(machine.outcome(of: 1, since: 0) == .written)
  }

  @Test("A batch has its timers, and a timer that is stored while it is written is returned")
  func timers() throws {
    let timers = (0..<4).map { _ in OperationSubscription {} }
    _ = machine.note(Note("a"))
    #expect(machine.addTimer(timers[0]) == nil)
    let batch = try #require(machine.flush())
    #expect(batch.timers == [timers[0]])
    #expect(machine.addTimer(timers[1]) == timers[1])
    _ = machine.note(Note("a"))
    _ = machine.end(batch, isSuccess: true)
    // One that comes late takes the place of no other.
    #expect(machine.addTimer(timers[1]) == nil && machine.addTimer(timers[2]) == nil)
    let next = try #require(machine.timerEnded())
    #expect(next.timers == [timers[1], timers[2]])
    #expect(machine.addTimer(timers[3]) == timers[3])
  }

  @Test("A change during a batch is in the next batch, after a new timer")
  func during() throws {
    _ = machine.note(Note("a"))
    let batch = try #require(machine.timerEnded())
    #expect(machine.note(Note("a")) == nil)
    #expect(machine.end(batch, isSuccess: true) == .seconds(1))
    #expect(machine.writtenCount == 1)
    #expect(machine.timerEnded()?.changes.items.count == 1)
  }

  @Test(
    "A failed batch is written again after growing delays, with the newest item of each key")
  func failures() throws {
    let older = Note("a")
    let newer = Note("a", of: older)
    _ = machine.note(older)
    _ = machine.note(Note("b"))
    var batch = try #require(machine.timerEnded())
    _ = machine.note(newer)
    var delays: [Duration] = []
    for round in 2...8 {
      #expect(batch.followsFailure == (round > 2))
      delays.append(try #require(machine.end(batch, isSuccess: false)))
      batch = try #require(machine.timerEnded())
      #expect(batch.changes.items.count == 2 && newer.isIn(batch.changes.items))
    }
    #expect(delays == [1, 2, 4, 8, 16, 30, 30].map { .seconds($0) })
    #expect(machine.end(batch, isSuccess: true) == nil)
    #expect(machine.writtenCount == 3)
  }

  @Test("A removal drops pending items, and hides saved ones until it has ended")
  func removal() throws {
    _ = machine.note(Note("values/a/1"))
    _ = machine.note(Note("values/b"))
    machine.remove("values/a", isPrefix: true)
    #expect(machine.isRemoved("values/a/1") && !machine.isRemoved("values/b"))
    let later = Note("values/a/2")
    _ = machine.note(later)
    let batch = try #require(machine.timerEnded())
    #expect(batch.changes.items.map(\.key).sorted() == ["values/a/2", "values/b"])
    #expect(machine.isRemoved("values/a/1"))
    #expect(machine.end(batch, isSuccess: false) != nil)
    #expect(machine.isRemoved("values/a/1"))
    let again = try #require(machine.timerEnded())
    #expect(again.changes.removedPrefixes.count == 1 && again.changes.items.count == 2)
    _ = machine.end(again, isSuccess: true)
    #expect(!machine.isRemoved("values/a/1"))
  }

  @Test(
    "A removal during a batch that fails drops the items of the batch", arguments: [false, true])
  func removalDuringBatch(isPrefix: Bool) throws {
    _ = machine.note(Note(isPrefix ? "values/a/1" : "values/a"))
    _ = machine.note(Note("values/ab"))
    let batch = try #require(machine.timerEnded())
    machine.remove("values/a", isPrefix: isPrefix)
    #expect(machine.end(batch, isSuccess: false) != nil)
    #expect(machine.timerEnded()?.changes.items.map(\.key) == ["values/ab"])
  }

  @Test("A late change of a removed store does not replace that of its successor")
  func successor() throws {
    let (removed, successor) = (Note("a"), Note("a"))
    _ = machine.note(successor)
    _ = machine.note(removed)
    let batch = try #require(machine.timerEnded())
    #expect(successor.isIn(batch.changes.items))
  }

  @Test("A key is pending for stores other than its owner until the batch has ended")
  func pending() throws {
    let item = Note("a")
    let other = Note("a")
    _ = machine.note(item)
    #expect(machine.isPending("a", besides: other.owner) && machine.isPending("a", besides: nil))
    #expect(!machine.isPending("a", besides: item.owner))
    let batch = try #require(machine.timerEnded())
    #expect(machine.isPending("a", besides: other.owner))
    _ = machine.end(batch, isSuccess: true)
    #expect(!machine.isPending("a", besides: other.owner))
  }
}
