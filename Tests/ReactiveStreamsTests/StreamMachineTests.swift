import Testing

@testable import ReactiveStreams

private typealias Machine = StreamMachine<Int, String>

extension StreamMachine.Offer {
  /// The action as text.
  fileprivate var words: String {
    switch self {
    case .kept(nil): "kept"
    case .kept(let old?): "kept instead of \(old)"
    case .dropped: "dropped"
    case .resume(let waiter): "resume \(waiter)"
    }
  }
}

extension StreamMachine.Take {
  /// The action as text.
  fileprivate var words: String {
    switch self {
    case .element(let element): "element \(element)"
    case .end: "end"
    case .wait(nil): "wait"
    case .wait(let earlier?): "wait instead of \(earlier)"
    }
  }
}

@Suite("StreamMachine")
struct StreamMachineTests {
  @Test("Open: an element is kept, a poll returns at once, a read waits")
  func open() {
    var machine = Machine(policy: .all)
    #expect(machine.take(orWait: nil).words == "wait")
    #expect(machine.offer(1).words == "kept")
    #expect(machine.take(orWait: nil).words == "element 1")
    #expect(machine.offer(2).words == "kept")
    #expect(machine.take(orWait: "a").words == "element 2")
    #expect(machine.take(orWait: "a").words == "wait")
    #expect(machine.pendingCount == 0)
  }

  @Test("A poll stores no waiter")
  func poll() {
    var machine = Machine(policy: .all)
    #expect(machine.take(orWait: nil).words == "wait")
    #expect(machine.offer(1).words == "kept")
  }

  @Test("Waiting: an element resumes the waiter and is not kept, with every policy")
  func waiting() {
    for policy in [StreamBuffering.all, .oldest(1), .newest(1)] {
      var machine = Machine(policy: policy)
      _ = machine.take(orWait: "a")
      #expect(machine.take(orWait: nil).words == "wait")
      #expect(machine.offer(1).words == "resume a")
      #expect(machine.pendingCount == 0)
      #expect(machine.offer(2).words == "kept")
    }
  }

  @Test("Waiting: a second read replaces the first, which is returned")
  func secondRead() {
    var machine = Machine(policy: .all)
    #expect(machine.take(orWait: "a").words == "wait")
    #expect(machine.take(orWait: "b").words == "wait instead of a")
    #expect(machine.offer(1).words == "resume b")
  }

  @Test("Waiting: a finish returns the waiter, once")
  func finishWaiting() {
    var machine = Machine(policy: .all)
    _ = machine.take(orWait: "a")
    #expect(machine.finish() == "a")
    #expect(machine.finish() == nil)
    #expect(machine.cancel().waiter == nil)
  }

  @Test("Waiting: a cancel returns the waiter, once")
  func cancelWaiting() {
    var machine = Machine(policy: .all)
    _ = machine.take(orWait: "a")
    #expect(machine.cancel().waiter == "a")
    #expect(machine.cancel().waiter == nil)
    #expect(machine.finish() == nil)
  }

  @Test("Finished: kept elements can be read, new ones are dropped")
  func finished() {
    var machine = Machine(policy: .all)
    _ = machine.offer(1)
    _ = machine.offer(2)
    #expect(machine.finish() == nil)
    #expect(machine.offer(3).words == "dropped")
    #expect(machine.take(orWait: nil).words == "element 1")
    #expect(machine.take(orWait: "a").words == "element 2")
    #expect(machine.take(orWait: "a").words == "end")
    #expect(machine.take(orWait: nil).words == "end")
  }

  @Test("A cancel returns the kept elements, and ends a read that begins later")
  func cancelOpen() {
    var machine = Machine(policy: .all)
    _ = machine.offer(1)
    _ = machine.offer(2)
    let (waiter, dropped) = machine.cancel()
    #expect(waiter == nil)
    #expect(dropped.count == 2)
    #expect(machine.pendingCount == 0)
    #expect(machine.take(orWait: "a").words == "end")
    #expect(machine.offer(3).words == "dropped")
  }

  @Test("A cancel after a finish returns the kept elements")
  func cancelFinished() {
    var machine = Machine(policy: .all)
    _ = machine.offer(1)
    _ = machine.finish()
    #expect(machine.cancel().dropped.count == 1)
    #expect(machine.take(orWait: "a").words == "end")
  }

  @Test(".all keeps every element, in order")
  func all() {
    var machine = Machine(policy: .all)
    for element in 0..<500 { #expect(machine.offer(element).words == "kept") }
    for element in 0..<500 { #expect(machine.take(orWait: nil).words == "element \(element)") }
  }

  @Test(".oldest keeps the first elements, and drops new ones while it is full", arguments: 1...4)
  func oldest(limit: Int) {
    var machine = Machine(policy: .oldest(limit))
    for element in 0..<10 {
      #expect(machine.offer(element).words == (element < limit ? "kept" : "dropped"))
    }
    #expect(machine.take(orWait: nil).words == "element 0")
    #expect(machine.offer(10).words == "kept")
    #expect(machine.pendingCount == limit)
  }

  @Test(".newest keeps the last elements, and returns the oldest for a new one", arguments: 1...4)
  func newest(limit: Int) {
    var machine = Machine(policy: .newest(limit))
    for element in 0..<10 {
      let old = element - limit
      #expect(machine.offer(element).words == (old < 0 ? "kept" : "kept instead of \(old)"))
      #expect(machine.pendingCount == min(element + 1, limit))
    }
    #expect(machine.take(orWait: nil).words == "element \(10 - limit)")
  }
}
