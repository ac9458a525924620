import Testing

@testable import ReactiveStreams

/// Readers read nothing of a replaced stream.
@Suite("flatMapLatest, its reader")
final class FlatMapLatestReaderTests {
  private typealias Operator = @Sendable (StateStream<String>) -> StateStream<String>

  private let executor = ManualExecutor()
  private let read = Recorder<String?>()
  private let outer = StateCell(0)
  private let inners = [StateCell("a"), StateCell<String>()]
  private var reading: Task<Void, Never>?

  deinit {
    reading?.cancel()
    executor.run()
  }

  /// Starts a task that makes an iterator, calls `before`, and reads until the stream ends.
  private func start(
    _ stream: StateStream<String>, before: @escaping @Sendable () -> Void = {}
  ) {
    reading = executor.start { [read] in
      var iterator = stream.makeAsyncIterator()
      before()
      while let element = await iterator.next() { read.record(element) }
      read.record(nil)
    }
  }

  private var stream: StateStream<String> {
    outer.stream.flatMapLatest { [inners] in inners[$0].stream }
  }

  private static let operators: [Operator] = [
    { $0 },
    { $0.map { $0 } },
    { $0.compactMap { $0 } },
    { $0.filter { _ in true } },
    { $0.scan("") { $1 } },
    { $0.removeDuplicates() },
    { $0.merge(StateCell<String>().stream) },
    { StateCell<String>().stream.merge($0) },
    { StateStream.combineLatest([$0]).map { $0[0] } },
    { StateStream.combineLatest([.just(""), $0, $0.map { $0 }]).map { $0[1] } },
    { $0.combineLatest(.just(1)).map { $0.0 } },
    { StateStream.just(1).combineLatest($0).map { $0.1 } },
    { $0.flatMapLatest { .just($0) } },
    { stream in StateStream.just(1).flatMapLatest { _ in stream } },
  ]

  @Test("An unread element of the earlier stream is dropped", arguments: operators.indices)
  func unread(index: Int) {
    start(Self.operators[index](stream)) { [outer] in outer.set(1) }
    executor.run()
    #expect(read.elements == [])
    inners[1].set("b")
    executor.run()
    #expect(read.elements == ["b"])
  }

  @Test("An element that has resumed the reader is dropped if its stream is replaced first")
  func resumed() {
    start(stream)
    executor.run()
    inners[0].set("a1")
    outer.set(1)
    executor.run()
    #expect(read.elements == ["a"])
    inners[1].set("b")
    executor.run()
    #expect(read.elements == ["a", "b"])
  }

  @Test("An element that equals a dropped one of the earlier stream is read")
  func equalToDropped() {
    start(stream.removeDuplicates().map { $0 })
    executor.run()
    inners[0].set("same")
    outer.set(1)
    executor.run()
    inners[1].set("same")
    executor.run()
    #expect(read.elements == ["a", "same"])
  }

  @Test("An element that equals a read or an unread one of the earlier stream is read once")
  func equalToRead() {
    inners[1].set("a")
    start(stream.removeDuplicates().map { $0 }) { [outer] in outer.set(1) }
    executor.run()
    #expect(read.elements == ["a"])
    outer.set(0)
    outer.set(1)
    executor.run()
    #expect(read.elements == ["a"])
    inners[1].set("b")
    executor.run()
    #expect(read.elements == ["a", "b"])
  }

  @Test(
    "After a stream is replaced, no element of it is read",
    arguments: 0..<300)
  func race(round: Int) async {
    let outer = StateCell(0)
    let inners = (0..<3).map { StateCell($0) }
    let moved = Box(0)
    var iterator = outer.stream.flatMapLatest { inners[$0].stream }.makeAsyncIterator()
    let writing = onThread {
      for index in [1, 2] {
        for _ in 0..<5 { inners[index - 1].set(index - 1) }
        outer.set(index)
        moved.exchange(index)
      }
    }
    while true {
      let newest = moved.value
      guard let element = await iterator.next() else { break }
      #expect(element >= newest)
      if element == 2 { break }
    }
    #expect(writing.wait())
  }

  @Test("An unread element stays, if a stream that is not replaced sends an equal one")
  func renewedByOther() {
    let other = StateCell<String>()
    start(stream.merge(other.stream).removeDuplicates()) { [outer] in
      other.set("a")
      outer.set(1)
    }
    executor.run()
    #expect(read.elements == ["a"])
  }
}

@Suite("StreamEpoch")
struct StreamEpochTests {
  @Test("It is over when it has ended, or one that it is a part of")
  func end() {
    let (first, second) = (StreamEpoch(), StreamEpoch())
    let both = StreamEpoch.common([first, second])
    let part = StreamEpoch(within: [both])
    #expect(!part.isOver)
    second.end()
    #expect(part.isOver)
    #expect(!first.isOver)
    #expect(StreamEpoch.common([nil, second]) === second)
    #expect(StreamEpoch.common([nil, nil]) == nil)
  }

  @Test("It can be renewed until it was found to be over")
  func renewal() {
    let epochs = (0..<3).map { _ in StreamEpoch() }
    let own = StreamEpoch(within: [epochs[0]])
    epochs[0].end()
    #expect(own.renew(within: epochs[1]))
    #expect(!own.isOver)
    epochs[1].end()
    #expect(own.isOver)
    #expect(!own.renew(within: epochs[2]))
    #expect(own.isOver)
  }
}
