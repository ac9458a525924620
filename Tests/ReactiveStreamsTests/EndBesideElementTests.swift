import Synchronization
import Testing

@testable import ReactiveStreams

/// A source that another thread may end while an element is delivered, as the shutdown of a client does.
@Suite("An end beside an element", .timeLimit(.minutes(5))) struct EndBesideElementTests {
  /// Sends signals to its one subscriber, also after an end.
  private final class Loose: Sendable {
    private let handler = Mutex<StreamSource<Int>.Handler?>(nil)

    var source: StreamSource<Int> {
      StreamSource { [self] new in
        handler.withLock { $0 = new }
        return .empty
      }
    }

    func send(_ signal: StreamSignal<Int>) { handler.withLock { $0 }?(signal) }
  }

  private static let operators: [(name: String, StreamSource<Int>.Transform)] = [
    ("none", { $0 }),
    ("map", { $0.map { $0 } }),
    ("filter", { $0.filter { _ in true } }),
    ("scan", { $0.scan(0) { $1 } }),
    ("removeDuplicates", { $0.removeDuplicates(by: ==) }),
    ("merge", { $0.merge(.ended) }),
    ("combineLatest", { $0.combineLatest(.endedAfter(0)).map { $0.0 } }),
    ("combineLatest of an array", { .combineLatest([$0, .endedAfter(0)]).map { $0[0] } }),
    ("flatMapLatest", { $0.flatMapLatest { .endedAfter($0) } }),
    ("debounce", { $0.timed(.debounce, for: .seconds(1)) { _, _ in .empty } }),
    ("throttle", { $0.timed(.throttle, for: .seconds(1)) { _, _ in .empty } }),
  ]

  @Test("The elements before the end are read, the later ones are dropped", arguments: 0...3)
  func order(position: Int) async {
    for (name, transform) in Self.operators {
      let source = Loose()
      let stream = EventStream(transform(source.source), buffering: .all)
      var iterator = stream.makeAsyncIterator()
      for number in 0..<3 {
        if number == position { source.send(.finished) }
        source.send(.element(number))
      }
      source.send(.finished)
      var numbers: [Int] = []
      while let number = await iterator.next() { numbers.append(number) }
      source.send(.element(9))
      #expect(await iterator.next() == nil, "\(name)")
      let sent = Array(0..<position)
      switch name {
      case "debounce": #expect(numbers == sent.suffix(1), "\(name)")
      // The first one at once, and the newest one at the end.
      case "throttle": #expect(numbers == (sent.count > 1 ? [0, position - 1] : sent), "\(name)")
      default: #expect(numbers == sent, "\(name)")
      }
    }
  }

  @Test("A waiting read returns the element or the end, whichever is first")
  func waiting() {
    var machine = StreamMachine<Int, Int>(policy: .all)
    guard case .wait = machine.take(orWait: 1) else { return #expect(Bool(false)) }
    #expect(machine.finish() == 1)
    guard case .dropped = machine.offer(7) else { return #expect(Bool(false)) }
    guard case .end = machine.take(orWait: 2) else { return #expect(Bool(false)) }
    machine = StreamMachine(policy: .all)
    _ = machine.take(orWait: 1)
    guard case .resume(1) = machine.offer(7) else { return #expect(Bool(false)) }
    #expect(machine.finish() == nil, "the waiter has the element")
    guard case .end = machine.take(orWait: 2) else { return #expect(Bool(false)) }
  }

  @Test("An end of another thread beside elements loses none before it", arguments: 0..<100)
  func threads(round: Int) async {
    for (name, transform) in Self.operators where name != "debounce" && name != "throttle" {
      let source = Loose()
      var iterator = EventStream(transform(source.source), buffering: .all).makeAsyncIterator()
      source.send(.element(0))
      async let sent: Void = Task.detached {
        for number in 1..<20 { source.send(.element(number)) }
      }.value
      async let ended: Void = Task.detached { source.send(.finished) }.value
      var numbers: [Int] = []
      while let number = await iterator.next() { numbers.append(number) }
      _ = await (sent, ended)
      #expect(await iterator.next() == nil, "\(name)")
      #expect(numbers == Array(0..<numbers.count) && !numbers.isEmpty, "\(name): \(numbers)")
    }
  }
}

extension StreamSource {
  fileprivate typealias Transform = @Sendable (StreamSource<Int>) -> StreamSource<Int>

  /// A source that sends nothing, and ends.
  fileprivate static var ended: StreamSource {
    StreamSource { handler in
      handler(.finished)
      return .empty
    }
  }

  /// A source that sends an element, and ends.
  fileprivate static func endedAfter(_ element: Element) -> StreamSource {
    StreamSource { handler in
      handler(.element(element))
      handler(.finished)
      return .empty
    }
  }
}
