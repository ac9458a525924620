import Testing

@testable import ReactiveStreams

@Suite("FIFO")
struct FIFOTests {
  @Test("An empty queue has nothing to pop")
  func empty() {
    var queue = FIFO<Int>()
    #expect(queue.isEmpty)
    #expect(queue.popFirst() == nil)
    #expect(queue.isEmpty)
  }

  @Test(
    "Elements are popped in the order in which they were appended",
    arguments: [1, 31, 32, 33, 64, 65, 999])
  func order(count: Int) {
    var queue = FIFO<Int>()
    for element in 0..<count { queue.append(element) }
    for element in 0..<count {
      #expect(queue.count == count - element)
      #expect(queue.popFirst() == element)
    }
    #expect(queue.isEmpty)
    #expect(queue.popFirst() == nil)
  }

  @Test("It agrees with an array after many appends and pops at both ends")
  func mixture() {
    var generator = SeededGenerator(seed: 11)
    for appends in 1...9 {
      var queue = FIFO<Int>()
      var model: [Int] = []
      for step in 0..<2_000 {
        if Int.random(in: 0..<10, using: &generator) < appends {
          queue.append(step)
          model.append(step)
        } else if step.isMultiple(of: 3) {
          let mustPop = step.isMultiple(of: 2) && !model.isEmpty
          #expect(queue.popLast { _ in mustPop } == (mustPop ? model.removeLast() : nil))
        } else {
          #expect(queue.popFirst() == (model.isEmpty ? nil : model.removeFirst()))
        }
        #expect(queue.count == model.count)
        #expect(queue.isEmpty == model.isEmpty)
      }
    }
  }

  @Test("An element that is nil is an element")
  func optionalElements() {
    var queue = FIFO<Int?>()
    queue.append(nil)
    queue.append(1)
    #expect(queue.count == 2)
    #expect(queue.popFirst() == .some(.none))
    #expect(queue.popFirst() == .some(1))
    #expect(queue.popFirst() == .none)
  }

  @Test("A popped or removed element is released at once, also before the storage shrinks")
  func release() {
    let live = LiveCount()
    var queue = FIFO<Counted>()
    for number in 0..<100 { queue.append(Counted(number, in: live)) }
    for popped in 1...40 {
      _ = queue.popFirst()
      #expect(live.now == 100 - popped)
    }
    _ = queue.takeAll()
    #expect(live.now == 0)
    #expect(queue.isEmpty)
  }

  @Test("A copy is independent of the original")
  func copy() {
    var queue = FIFO<Int>()
    queue.append(1)
    var copy = queue
    copy.append(2)
    #expect(queue.popFirst() == 1)
    #expect(queue.isEmpty)
    #expect(copy.count == 2)
    #expect(copy.popFirst() == 1)
  }
}
