/// The machine between the writers of a stream and its one reader.
///
/// Its states:
/// - *open*: nobody waits; what has come is kept as the policy says.
/// - *waiting*: the reader waits, so nothing is kept.
/// - *finished*: nothing more will come; what was kept can still be read.
///
/// A cancelled read is a finish that keeps nothing; that state is also the tombstone for a
/// cancellation that comes before the reader waits.
struct StreamMachine<Element: Sendable, Waiter: Sendable>: Sendable {
  enum State: Sendable {
    case open
    case waiting(Waiter)
    case finished
  }

  enum Offer: Sendable {
    /// The element is kept; what gave way to it is released without the lock.
    case kept(insteadOf: Element?)
    case dropped
    case resume(Waiter)
  }

  enum Take: Sendable {
    case element(Element)
    case end
    /// Nothing is there. A read that waited already gives way to this one, and ends.
    case wait(insteadOf: Waiter?)
  }

  let policy: StreamBuffering
  var state = State.open
  var buffer = FIFO<Element>()

  var pendingCount: Int { buffer.count }

  /// An element came. With `.resume` it belongs to the waiter.
  mutating func offer(_ element: Element) -> Offer {
    switch state {
    case .finished:
      return .dropped
    case .waiting(let waiter):
      state = .open
      return .resume(waiter)
    case .open:
      return keep(element)
    }
  }

  mutating func keep(_ element: Element) -> Offer {
    var oldest: Element?
    switch policy {
    case .oldest(let limit) where buffer.count >= limit: return .dropped
    case .newest(let limit) where buffer.count >= limit: oldest = buffer.popFirst()
    case .all, .oldest, .newest: break
    }
    buffer.append(element)
    return .kept(insteadOf: oldest)
  }

  /// The reader asks, and waits if it is told to: `waiter` is nil for a mere look.
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

  /// Nothing more will come. Returns the waiter, whose read ends.
  mutating func finish() -> Waiter? {
    defer { state = .finished }
    guard case .waiting(let waiter) = state else { return nil }
    return waiter
  }

  /// The reader does not want any more. Returns the waiter, whose read ends, and what was kept.
  mutating func cancel() -> (waiter: Waiter?, dropped: FIFO<Element>) {
    defer { buffer.removeAll() }
    return (finish(), buffer)
  }
}
