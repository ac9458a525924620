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

    var waiter: Waiter? { if case .waiting(let waiter) = self { waiter } else { nil } }
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
    var replaced: Element?
    switch (state, policy) {
    case (.finished, _): return .dropped
    case (.waiting(let waiter), _):
      state = .open
      return .resume(waiter)
    case (.open, .oldest(let limit)) where buffer.count >= limit: return .dropped
    case (.open, .newest(let limit)) where buffer.count >= limit: replaced = buffer.popFirst()
    case (.open, _): break
    }
    buffer.append(element)
    return .kept(insteadOf: replaced)
  }

  /// Takes the next element for the reader, or lets `waiter` wait. Without a waiter it only polls.
  mutating func take(orWait waiter: Waiter?) -> Take {
    if let element = buffer.popFirst() { return .element(element) }
    if case .finished = state { return .end }
    guard let waiter else { return .wait(insteadOf: nil) }
    return .wait(insteadOf: exchange(&state, with: .waiting(waiter)).waiter)
  }

  /// Ends the stream. Returns the waiter, whose read ends.
  mutating func finish() -> Waiter? { exchange(&state, with: .finished).waiter }

  /// Cancels the reader. Returns the waiter, whose read ends, and the elements that were kept.
  mutating func cancel() -> (waiter: Waiter?, dropped: FIFO<Element>) {
    (finish(), buffer.takeAll())
  }
}
