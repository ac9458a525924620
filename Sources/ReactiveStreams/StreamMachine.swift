/// The machine between the writers of a stream and its one reader.
///
/// - *open*: no read waits; elements are kept according to the policy.
/// - *waiting*: a read waits, and nothing is kept.
/// - *finished*: the stream has ended; kept elements can still be read.
///
/// A cancelled read finishes the stream and drops what was kept. That state is also the tombstone
/// for a cancellation that comes before the read waits.
struct StreamMachine<Element: Sendable, Waiter: Sendable>: Sendable {
  enum State: Sendable {
    case open
    case waiting(Waiter)
    case finished
  }

  enum Offer: Sendable {
    /// The element was kept. The element that it replaced is released without the lock.
    case kept(insteadOf: Element?)
    case dropped
    case resume(Waiter)
  }

  enum Take: Sendable {
    case element(Element)
    case end
    /// No element is kept. An earlier read that waits is replaced by this one, and ends.
    case wait(insteadOf: Waiter?)
  }

  private let policy: StreamBuffering
  private var state = State.open
  private var buffer = FIFO<Element>()

  init(policy: StreamBuffering) { self.policy = policy }

  var pendingCount: Int { buffer.count }

  /// Takes an element. With `.resume` the waiter receives it.
  mutating func offer(_ element: Element) -> Offer {
    switch state {
    case .finished: return .dropped
    case .waiting(let waiter):
      state = .open
      return .resume(waiter)
    case .open: return keep(element)
    }
  }

  private mutating func keep(_ element: Element) -> Offer {
    var oldest: Element?
    switch policy {
    case .oldest(let limit) where buffer.count >= limit: return .dropped
    case .newest(let limit) where buffer.count >= limit: oldest = buffer.popFirst()
    case .all, .oldest, .newest: break
    }
    buffer.append(element)
    return .kept(insteadOf: oldest)
  }

  /// Takes the next element for the reader, or lets `waiter` wait. Without a waiter it only polls.
  mutating func take(orWait waiter: Waiter?) -> Take {
    if let element = buffer.popFirst() { return .element(element) }
    switch state {
    case .finished: return .end
    case .open:
      if let waiter { state = .waiting(waiter) }
      return .wait(insteadOf: nil)
    case .waiting(let earlier):
      guard let waiter else { return .wait(insteadOf: nil) }
      state = .waiting(waiter)
      return .wait(insteadOf: earlier)
    }
  }

  /// Ends the stream. Returns the waiter, whose read ends.
  mutating func finish() -> Waiter? {
    defer { state = .finished }
    guard case .waiting(let waiter) = state else { return nil }
    return waiter
  }

  /// Cancels the reader. Returns the waiter, whose read ends, and the elements that were kept.
  mutating func cancel() -> (waiter: Waiter?, dropped: FIFO<Element>) {
    (finish(), buffer.takeAll())
  }
}
