// The code of the guide Streams: the build compiles it, and a test compares it with the guide.

// snippet: broadcast
import ReactiveStreams

struct Door: Sendable {
  let isOpen = Broadcast<Bool>()

  func pass() {
    isOpen.send(true)
    isOpen.send(false)
  }
}
// end

// snippet: loop
func countOpenings(of door: Door, upTo limit: Int) async -> Int {
  var count = 0
  for await isOpen in door.isOpen.values where isOpen {
    count += 1
    if count == limit { break }
  }
  return count
}
// end

// snippet: subscribe
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

// snippet: buffering
func lastMoves(of door: Door) -> EventStream<Bool> {
  door.isOpen.values(buffering: .newest(2))
}
// end

// snippet: operators
func bothOpen(_ left: Door, _ right: Door) -> EventStream<Bool> {
  left.isOpen.values
    .combineLatest(right.isOpen.values)
    .map { left, right in left && right }
    .removeDuplicates()
}
// end

// snippet: latest
func moves(ofThe chosen: Broadcast<Door>) -> EventStream<String> {
  chosen.values
    .flatMapLatest { door in door.isOpen.values }
    .map { isOpen in isOpen ? "open" : "shut" }
}
// end
