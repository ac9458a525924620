import Operation
import Synchronization
import Testing

/// `debounce` and `throttle` with a clock; ReactiveStreamsTests has the rest of their behaviour.
@Suite("debounce and throttle of streams", .timeLimit(.minutes(5)))
struct StreamTimeTests {
  private let clock = ManualClock()
  private let broadcast = Broadcast<Int>()

  /// Sends 1 and 2, advances the clock by three seconds, sends 3, and returns what a reader receives.
  private func read(_ stream: EventStream<Int>) async -> [Int] {
    var iterator = stream.makeAsyncIterator()
    broadcast.send(1)
    broadcast.send(2)
    await clock.advance(by: .seconds(3))
    broadcast.send(3)
    broadcast.finish()
    var elements: [Int] = []
    while let element = await iterator.next() { elements.append(element) }
    return elements
  }

  @Test("debounce sends the newest element after the duration, and the pending one at the end")
  func debounce() async {
    #expect(await read(broadcast.values.debounce(for: .seconds(3), clock: clock)) == [2, 3])
  }

  @Test("throttle sends the first element, and then the newest one of each duration")
  func throttle() async {
    #expect(await read(broadcast.values.throttle(for: .seconds(3), clock: clock)) == [1, 2, 3])
    #expect(broadcast.subscriberCount == 0)
  }

  @Test("Streams of states have the same operators")
  func states() async {
    var debounced = StateStream.just(1).debounce(for: .seconds(1), clock: clock)
      .makeAsyncIterator()
    var throttled = StateStream.just(2).throttle(for: .seconds(1), clock: clock)
      .makeAsyncIterator()
    #expect(await throttled.next() == 2)
    await clock.advance(by: .seconds(1))
    #expect(await debounced.next() == 1)
  }

  @Test("The clock of the machine is used by default, and a wait does not outlast its iterator")
  func systemClock() async {
    var debounced = broadcast.values.debounce(for: .seconds(3_600)).makeAsyncIterator()
    var throttled = StateStream.just(2).throttle(for: .seconds(3_600)).makeAsyncIterator()
    broadcast.send(1)
    broadcast.finish()
    #expect(await debounced.next() == 1)
    #expect(await throttled.next() == 2)
  }

  @Test("A negative duration is reported, and passes every element")
  func negative() async {
    let issues = Mutex<[String]>([])
    let streams = OperationIssue.withHandler { issue in
      issues.withLock { $0.append(issue.message) }
    } operation: {
      [
        broadcast.values.debounce(for: .seconds(-1), clock: clock),
        broadcast.values.throttle(for: .seconds(-1), clock: clock),
        broadcast.values.debounce(for: .zero, clock: clock),
        broadcast.values.throttle(for: .zero, clock: clock),
      ]
    }
    let expected = ["debounce", "throttle"].map {
      "The duration of \($0) cannot be -1.0 seconds; it is taken as zero."
    }
    #expect(issues.withLock { $0 } == expected)
    var iterators = streams.map { $0.makeAsyncIterator() }
    broadcast.send(1)
    broadcast.send(2)
    for index in iterators.indices {
      #expect(await iterators[index].next() == 1)
      #expect(await iterators[index].next() == 2)
    }
  }
}
