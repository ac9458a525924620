import Testing

@testable import ReactiveStreams

@Suite("EventStream")
struct EventStreamTests {
  private let executor = ManualExecutor()
  private let broadcast = Broadcast<Int>()
  private let read = Recorder<Int>()

  /// Sends elements without a read, and returns the elements that are read afterwards.
  private func unread(
    _ elements: some Sequence<Int>, _ stream: EventStream<Int>
  ) async -> [Int] {
    var iterator = stream.makeAsyncIterator()
    for element in elements { broadcast.send(element) }
    broadcast.finish()
    var read: [Int] = []
    while let element = await iterator.next() { read.append(element) }
    return read
  }

  @Test("It keeps every element by default")
  func all() async {
    #expect(broadcast.values.buffering == .all)
    #expect(await unread(0..<1_000, broadcast.values) == Array(0..<1_000))
  }

  @Test("With .oldest it keeps the first elements, and drops new ones while it is full")
  func oldest() async {
    #expect(await unread(0..<10, broadcast.values(buffering: .oldest(3))) == [0, 1, 2])
  }

  @Test("With .newest it keeps the last elements, and drops the oldest for a new one")
  func newest() async {
    #expect(await unread(0..<10, broadcast.values(buffering: .newest(3))) == [7, 8, 9])
  }

  @Test(
    "A fast reader reads every element, with every policy",
    arguments: [StreamBuffering.all, .oldest(1), .newest(1)])
  func quickReader(buffering: StreamBuffering) {
    let task = executor.read(broadcast.values(buffering: buffering), into: read)
    executor.run()
    for element in 0..<10 {
      broadcast.send(element)
      executor.run()
    }
    #expect(read.elements == Array(0..<10))
    task.cancel()
    executor.run()
  }

  @Test("It subscribes when its iterator is made, and misses earlier elements")
  func subscribesLate() async {
    let values = broadcast.values
    broadcast.send(1)
    #expect(broadcast.subscriberCount == 0)
    var iterator = values.makeAsyncIterator()
    #expect(broadcast.subscriberCount == 1)
    broadcast.send(2)
    #expect(await iterator.next() == 2)
  }

  @Test("Every reader of one stream reads every element")
  func readers() async {
    let values = broadcast.values
    var first = values.makeAsyncIterator()
    var second = values.makeAsyncIterator()
    broadcast.send(1)
    broadcast.send(2)
    #expect(await first.next() == 1)
    #expect(await first.next() == 2)
    #expect(await second.next() == 1)
    #expect(await second.next(isolation: nil) == 2)
  }

  @Test("A suspended read ends with nil when its task is cancelled, and unsubscribes")
  func cancellation() {
    let isOver = Box(false)
    let task = executor.start { [values = broadcast.values] in
      for await _ in values {}
      isOver.exchange(true)
    }
    executor.run()
    #expect(broadcast.subscriberCount == 1)
    task.cancel()
    executor.run()
    #expect(isOver.value)
    #expect(broadcast.subscriberCount == 0)
  }

  @Test("map transforms every element")
  func map() async {
    #expect(await unread(0..<4, broadcast.values.map { $0 * 2 }) == [0, 2, 4, 6])
  }

  @Test("compactMap drops elements that become nil")
  func compactMap() async {
    let stream = broadcast.values.compactMap { $0 % 2 == 0 ? $0 : nil }
    #expect(await unread(0..<6, stream) == [0, 2, 4])
  }

  @Test("filter drops elements that its closure excludes, and keeps those that are nil")
  func filter() async {
    #expect(await unread(0..<6, broadcast.values.filter { $0 % 2 == 0 }) == [0, 2, 4])
    let optionals = Broadcast<Int?>()
    var iterator = optionals.values.filter { $0 != 1 }.makeAsyncIterator()
    for element in [1, nil, 2] { optionals.send(element) }
    optionals.finish()
    #expect(await iterator.next() == .some(nil))
    #expect(await iterator.next() == 2)
  }

  @Test("scan combines every element with the result before it, also with a result of nil")
  func scan() async {
    #expect(await unread(1...4, broadcast.values.scan(0, +)) == [1, 3, 6, 10])
    let optionals = Broadcast<Int>()
    var iterator = optionals.values.scan(Int?.some(0)) { sum, element in
      element == 0 ? nil : (sum ?? 100) + element
    }.makeAsyncIterator()
    for element in [1, 0, 2] { optionals.send(element) }
    optionals.finish()
    #expect(await iterator.next() == 1)
    #expect(await iterator.next() == .some(nil))
    #expect(await iterator.next() == 102)
  }

  @Test("merge keeps the elements of both, and has the buffering of the first")
  func merge() async {
    let other = Broadcast<Int>()
    var iterator = broadcast.values.merge(other.values).makeAsyncIterator()
    let newest = broadcast.values(buffering: .newest(1)).merge(other.values)
    var second = newest.makeAsyncIterator()
    for element in 0..<4 { (element % 2 == 0 ? broadcast : other).send(element) }
    broadcast.finish()
    other.finish()
    var all: [Int] = []
    while let element = await iterator.next() { all.append(element) }
    #expect(all == [0, 1, 2, 3])
    #expect(newest.buffering == .newest(1))
    #expect(await second.next() == 3)
    #expect(await second.next() == nil)
  }

  @Test("combineLatest of an array keeps every array by default")
  func combineLatestOfArray() async {
    let sources = [broadcast, Broadcast<Int>()]
    let streams = sources.map(\.values)
    var all = EventStream.combineLatest(streams).makeAsyncIterator()
    var newest = EventStream.combineLatest(streams, buffering: .newest(1)).makeAsyncIterator()
    for element in 0..<4 { sources[element % 2].send(element) }
    for source in sources { source.finish() }
    var arrays: [[Int]] = []
    while let array = await all.next() { arrays.append(array) }
    #expect(arrays == [[0, 1], [2, 1], [2, 3]])
    #expect(await newest.next() == [2, 3])
    #expect(await newest.next() == nil)
    var none = EventStream<Int>.combineLatest([]).makeAsyncIterator()
    #expect(await none.next() == [])
    #expect(await none.next() == nil)
  }

  @Test("removeDuplicates drops an element that equals the one before it, and no other")
  func removeDuplicates() async {
    #expect(await unread([1, 1, 2, 2, 1], broadcast.values.removeDuplicates()) == [1, 2, 1])
  }

  @Test("flatMapLatest follows the newest stream, and keeps unread elements of the earlier one")
  func flatMapLatest() async {
    let inners = [Broadcast<Int>(), Broadcast<Int>()]
    var iterator = broadcast.values.flatMapLatest { inners[$0].values }.makeAsyncIterator()
    broadcast.send(0)
    inners[0].send(1)
    broadcast.send(1)
    #expect(inners.map(\.subscriberCount) == [0, 1])
    inners[0].send(2)
    inners[1].send(3)
    broadcast.finish()
    inners[1].finish()
    #expect(await iterator.next() == 1)
    #expect(await iterator.next() == 3)
    #expect(await iterator.next() == nil)
  }

  @Test("combineLatest delivers every pair, and ends when both have ended")
  func combineLatest() async {
    let other = Broadcast<Int>()
    let stream = broadcast.values.combineLatest(other.values).map { $0 * 10 + $1 }
    var iterator = stream.makeAsyncIterator()
    broadcast.send(1)
    other.send(2)
    other.send(3)
    broadcast.send(4)
    broadcast.finish()
    other.send(5)
    other.finish()
    for pair in [12, 13, 43, 45] { #expect(await iterator.next() == pair) }
    #expect(await iterator.next() == nil)
  }

  @Test("Operators keep the buffering of their stream")
  func buffering() {
    let stream = broadcast.values(buffering: .newest(3))
    #expect(stream.map { $0 }.buffering == .newest(3))
    #expect(stream.compactMap { $0 }.buffering == .newest(3))
    #expect(stream.removeDuplicates().buffering == .newest(3))
    #expect(stream.flatMapLatest { _ in broadcast.values }.buffering == .newest(3))
    #expect(stream.combineLatest(broadcast.values).buffering == .newest(3))
  }
}

@Suite("StreamBuffering")
struct StreamBufferingTests {
  @Test(
    "A limit below one is reported once and counts as one",
    arguments: [0, -1, .min])
  func limits(limit: Int) async {
    for (wrong, right) in [
      (StreamBuffering.oldest(limit), StreamBuffering.oldest(1)), (.newest(limit), .newest(1)),
    ] {
      let issues = Recorder<OperationIssue>()
      let broadcast = Broadcast<Int>()
      let stream = OperationIssue.withHandler {
        issues.record($0)
      } operation: {
        broadcast.values(buffering: wrong).map { $0 }.removeDuplicates()
      }
      #expect(issues.elements.map(\.kind) == [.invalidValue])
      #expect(issues.elements.allSatisfy { $0.message.contains("\(limit)") })
      #expect(stream.buffering == right)
      var iterator = stream.makeAsyncIterator()
      broadcast.send(1)
      broadcast.send(2)
      #expect(await iterator.next() == (right == .oldest(1) ? 1 : 2))
    }
  }

  @Test("No limit, and a limit of one or more, are accepted without a report")
  func sound() {
    let issues = Recorder<OperationIssue>()
    OperationIssue.withHandler {
      issues.record($0)
    } operation: {
      for buffering in [StreamBuffering.all, .oldest(1), .newest(1), .oldest(.max)] {
        #expect(buffering.checked == buffering)
      }
    }
    #expect(issues.elements == [])
  }
}
