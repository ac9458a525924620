// The code of the guide Streams: the build compiles it, and a test compares it with the guide.

// snippet: publish elements
import ReactiveStreams

struct Door: Sendable {
  let isOpen = Broadcast<Bool>()

  func pass() {
    isOpen.send(true)
    isOpen.send(false)
  }
}
// end

// snippet: follow with a loop
func countOpenings(of door: Door, upTo limit: Int) async -> Int {
  var count = 0
  for await isOpen in door.isOpen.values where isOpen {
    count += 1
    if count == limit { break }
  }
  return count
}
// end

// snippet: follow with a handler
final class Porter: Sendable {
  private let subscription: OperationSubscription

  init(_ doors: [Door], greet: @escaping @Sendable () -> Void) {
    subscription = .combined(
      doors.map { door in
        door.isOpen.subscribe { isOpen in
          if isOpen { greet() }
        }
      })
  }
}
// end

// snippet: two kinds of stream
func lastMoves(of door: Door) -> EventStream<Bool> {
  door.isOpen.values(buffering: .newest(2))
}
// end

// snippet: transform and combine
func bothOpen(_ left: Door, _ right: Door) -> EventStream<Bool> {
  left.isOpen.values
    .combineLatest(right.isOpen.values)
    .map { left, right in left && right }
    .removeDuplicates()
}
// end

// snippet: follow the newest stream
func moves(ofThe chosen: Broadcast<Door>) -> EventStream<String> {
  chosen.values
    .flatMapLatest { door in door.isOpen.values }
    .map { isOpen in isOpen ? "open" : "shut" }
}
// end

// snippet: filter
func openings(of door: Door) -> EventStream<Bool> {
  door.isOpen.values.filter { $0 }
}
// end

// snippet: count or collect
func openingCount(of door: Door) -> EventStream<Int> {
  door.isOpen.values.scan(0) { count, isOpen in isOpen ? count + 1 : count }
}
// end

// snippet: merge
func moves(of front: Door, and back: Door) -> EventStream<String> {
  front.isOpen.values.map { "front: \($0)" }
    .merge(back.isOpen.values.map { "back: \($0)" })
}
// end

// snippet: combine three streams
func allOpen(_ first: Door, _ second: Door, _ third: Door) -> EventStream<Bool> {
  first.isOpen.values
    .combineLatest(second.isOpen.values)
    .combineLatest(third.isOpen.values)
    .map { pair, third in pair.0 && pair.1 && third }
}
// end

// snippet: combine an array of streams
func openCount(of doors: [Door]) -> EventStream<Int> {
  EventStream.combineLatest(doors.map { $0.isOpen.values })
    .map { states in states.count { $0 } }
}
// end

// snippet: debounce
import Operation

func searchTexts(
  _ field: Broadcast<String>, clock: any OperationClock = SystemClock()
) -> EventStream<String> {
  field.values
    .debounce(for: .milliseconds(300), clock: clock)
    .removeDuplicates()
}
// end

// snippet: throttle
import Operation

func positions(
  _ pointer: Broadcast<SIMD2<Double>>, clock: any OperationClock = SystemClock()
) -> EventStream<SIMD2<Double>> {
  pointer.values.throttle(for: .milliseconds(16), clock: clock)
}
// end
