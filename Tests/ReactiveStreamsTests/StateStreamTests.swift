import Testing

@testable import ReactiveStreams

@Suite("StateStream")
struct StateStreamTests {
  private let executor = ManualExecutor()
  private let cell = StateCell(0)
  private let read = Recorder<Int>()

  @Test("It starts with the current state, and a fast reader reads every later one")
  func quickReader() {
    let task = executor.read(cell.stream, into: read)
    executor.run()
    for state in 1...3 {
      cell.set(state)
      executor.run()
    }
    #expect(read.elements == [0, 1, 2, 3])
    task.cancel()
    executor.run()
  }

  @Test("It subscribes when its iterator is made, and not before")
  func subscribesLate() async {
    let stream = cell.stream.map { $0 + 1 }.removeDuplicates()
    #expect(cell.subscriptionCount == 0)
    cell.set(1)
    var iterator = Optional(stream.makeAsyncIterator())
    #expect(cell.subscriberCount == 1)
    #expect(await iterator?.next() == 2)
    iterator = nil
    #expect(cell.subscriberCount == 0)
    #expect(cell.subscriptionCount == 1)
  }

  @Test("Every iterator has its own subscription")
  func iterators() async {
    let stream = cell.stream
    var first = stream.makeAsyncIterator()
    #expect(await first.next() == 0)
    cell.set(1)
    var second = stream.makeAsyncIterator()
    #expect(cell.subscriberCount == 2)
    #expect(await second.next() == 1)
    #expect(await first.next() == 1)
  }

  @Test("A reader that does not read holds one pending state, the newest")
  func newestWins() async {
    let live = LiveCount()
    let cell = StateCell(Counted(0, in: live))
    var iterator = cell.stream.makeAsyncIterator()
    for number in 1...100_000 { cell.set(Counted(number, in: live)) }
    #expect(live.now == 1)
    #expect(live.most <= 3)
    #expect(await iterator.next()?.number == 100_000)
  }

  @Test("A suspended reader reads the next state, and after it the newest")
  func waitingReader() {
    let task = executor.read(cell.stream, into: read)
    executor.run()
    cell.set(1)
    cell.set(2)
    cell.set(3)
    #expect(read.elements == [0])
    executor.run()
    #expect(read.elements == [0, 1, 3])
    task.cancel()
    executor.run()
  }

  @Test("It ends with its source, after the pending state")
  func end() async {
    var iterator = cell.stream.makeAsyncIterator()
    cell.set(1)
    cell.finish()
    cell.set(2)
    #expect(await iterator.next() == 1)
    #expect(await iterator.next() == nil)
  }

  @Test("A reader reads states in their order and the last one at the end", arguments: 0..<200)
  func lastState(round: Int) async {
    let cell = StateCell(0)
    let stream = cell.stream
    let task = Task {
      var seen: [Int] = []
      for await state in stream {
        seen.append(state)
        if state == 200 { break }
      }
      return seen
    }
    let done = onThread { for state in 1...200 { cell.set(state) } }
    let seen = await task.value
    done.wait()
    #expect(seen == seen.sorted())
    #expect(Set(seen).count == seen.count)
    #expect(seen.last == 200)
    #expect(cell.subscriberCount == 0)
  }

  @Test("A second read of one iterator replaces the first, which ends")
  func secondRead() {
    let reader = StreamReader(StateCell<Int>().source, policy: .all)
    let ended = Recorder<String>()
    let reads = ["a", "b"].map { name in
      executor.start {
        let element = await reader.next()
        ended.record("\(name) \(element.map(String.init) ?? "end")")
      }
    }
    executor.run()
    #expect(ended.elements == ["a end"])
    reads[1].cancel()
    executor.run()
  }

  @Test("A read stays on the actor of the caller")
  @MainActor func isolation() async {
    var iterator = cell.stream.map { $0 }.makeAsyncIterator()
    #expect(await iterator.next() == 0)
    MainActor.assertIsolated()
    cell.set(1)
    #expect(await iterator.next(isolation: #isolation) == 1)
    MainActor.assertIsolated()
  }
}

@Suite("StateStream, operators")
struct StateStreamOperatorTests {
  private let executor = ManualExecutor()
  private let cell = StateCell(0)
  private let read = Recorder<Int>()

  /// Sets each of the states, with a reader that reads all of them.
  private func states(_ states: [Int], through stream: StateStream<Int>) -> [Int] {
    let task = executor.read(stream, into: read)
    executor.run()
    for state in states {
      cell.set(state)
      executor.run()
    }
    cell.finish()
    executor.run()
    task.cancel()
    return read.elements
  }

  @Test("map transforms every element")
  func map() {
    #expect(states([1, 2], through: cell.stream.map { $0 * 2 }) == [0, 2, 4])
  }

  @Test("compactMap drops elements that become nil")
  func compactMap() {
    let even = cell.stream.compactMap { $0 % 2 == 0 ? $0 : nil }
    #expect(states([1, 2, 3, 4], through: even) == [0, 2, 4])
  }

  @Test("filter drops elements that its closure excludes")
  func filter() {
    #expect(states([1, 2, 3, 4], through: cell.stream.filter { $0 % 2 == 0 }) == [0, 2, 4])
  }

  @Test("scan combines every element with the result before it")
  func scan() {
    #expect(states([1, 2, 3], through: cell.stream.scan(10, +)) == [10, 11, 13, 16])
  }

  @Test("scan counts the elements that a slow reader misses, separately for each iterator")
  func missedInScan() async {
    let sums = cell.stream.scan(0, +)
    var first = sums.makeAsyncIterator()
    for state in 1...4 { cell.set(state) }
    var second = sums.makeAsyncIterator()
    #expect(await first.next() == 10)
    #expect(await second.next() == 4)
    cell.set(5)
    #expect(await first.next() == 15)
    #expect(await second.next() == 9)
  }

  @Test("merge begins with the states of both, and a reader reads the newest of both")
  func merge() {
    let other = StateCell(100)
    let task = executor.read(cell.stream.merge(other.stream), into: read)
    executor.run()
    #expect(read.elements == [100])
    cell.set(1)
    executor.run()
    other.set(101)
    executor.run()
    #expect(read.elements == [100, 1, 101])
    task.cancel()
    executor.run()
    #expect(cell.subscriberCount + other.subscriberCount == 0)
  }

  @Test("combineLatest of an array has the newest states in the order of the streams")
  func combineLatestOfArray() {
    let cells = [StateCell(1), StateCell<Int>(), StateCell(3)]
    let arrays = Recorder<[Int]>()
    let task = executor.read(StateStream.combineLatest(cells.map(\.stream)), into: arrays)
    executor.run()
    #expect(arrays.elements == [])
    cells[1].set(2)
    executor.run()
    cells[0].set(4)
    executor.run()
    #expect(arrays.elements == [[1, 2, 3], [4, 2, 3]])
    task.cancel()
    executor.run()
    #expect(cells.map(\.subscriberCount) == [0, 0, 0])
  }

  @Test("removeDuplicates drops an element that equals the one before it, and no other")
  func removeDuplicates() {
    let stream = cell.stream.removeDuplicates()
    #expect(states([0, 1, 1, 0, 0, 2], through: stream) == [0, 1, 0, 2])
  }

  @Test("removeDuplicates(by:) compares with its closure")
  func removeDuplicatesBy() {
    let stream = cell.stream.removeDuplicates { $0 / 10 == $1 / 10 }
    #expect(states([1, 10, 19, 9], through: stream) == [0, 10, 9])
  }

  @Test("removeDuplicates skips a repeat for a reader that missed the elements between")
  func missedChange() {
    let task = executor.read(cell.stream.removeDuplicates(), into: read)
    executor.run()
    cell.set(1)
    // The suspended reader received the 1 and misses the next two states.
    cell.set(0)
    cell.set(1)
    executor.run()
    #expect(read.elements == [0, 1])
    cell.set(2)
    executor.run()
    #expect(read.elements == [0, 1, 2])
    task.cancel()
    executor.run()
  }

  @Test("Operators after removeDuplicates are not called for a duplicate")
  func removedForOperators() {
    let mapped = Recorder<Int>()
    let stream = cell.stream.removeDuplicates().map { mapped.record($0) }
    let iterator = stream.makeAsyncIterator()
    for state in [0, 1, 1, 0] { cell.set(state) }
    #expect(mapped.elements == [0, 1, 0])
    _ = iterator
  }

  @Test("Two readers of a stream without duplicates compare separately")
  func independentReaders() async {
    let stream = cell.stream.removeDuplicates()
    var first = stream.makeAsyncIterator()
    #expect(await first.next() == 0)
    var second = stream.makeAsyncIterator()
    #expect(await second.next() == 0)
  }

  @Test("flatMapLatest delivers the states of the newest stream only")
  func flatMapLatest() {
    let inners = [StateCell(100), StateCell(200)]
    let stream = cell.stream.flatMapLatest { inners[$0].stream }
    let task = executor.read(stream, into: read)
    executor.run()
    cell.set(1)
    inners[0].set(101)
    executor.run()
    #expect(read.elements == [100, 200])
    task.cancel()
    executor.run()
    #expect(cell.subscriberCount == 0)
    #expect(inners.map(\.subscriberCount) == [0, 0])
  }

  @Test("combineLatest pairs the newest states of both, once both have one")
  func combineLatest() {
    let other = StateCell<Int>()
    let stream = cell.stream.combineLatest(other.stream).map { $0 * 10 + $1 }
    let task = executor.read(stream, into: read)
    executor.run()
    #expect(read.elements == [])
    cell.set(1)
    other.set(2)
    executor.run()
    cell.set(3)
    executor.run()
    #expect(read.elements == [12, 32])
    task.cancel()
    executor.run()
    #expect(cell.subscriberCount + other.subscriberCount == 0)
  }

  @Test("Operators run on the thread that commits, before its call returns")
  func synchronous() {
    let mapped = Recorder<Int>()
    let iterator = cell.stream.map { mapped.record($0) }.makeAsyncIterator()
    cell.set(1)
    #expect(mapped.elements == [0, 1])
    _ = iterator
  }
}
