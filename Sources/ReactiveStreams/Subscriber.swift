public import Synchronization

/// One handler, and whether it is still to be called.
@usableFromInline package final class Subscriber<Event: Sendable>: Sendable {
  @usableFromInline let handler: @Sendable (Event) -> Void
  @usableFromInline let isActive = Atomic(true)

  @inlinable package init(_ handler: @escaping @Sendable (Event) -> Void) {
    self.handler = handler
  }

  @inlinable package func receive(_ event: Event) {
    if isActive.load(ordering: .acquiring) { handler(event) }
  }

  /// Ends the calls: one that has not begun when this returns does not begin.
  @inlinable package func deactivate() {
    isActive.store(false, ordering: .releasing)
  }
}

/// The subscribers of one delivery queue in the order in which they came.
@usableFromInline struct SubscriberList<Event: Sendable>: Sendable {
  @usableFromInline typealias Slots = SlotList<UInt64, Seat>

  @usableFromInline struct Seat: Sendable {
    @usableFromInline let subscriber: Subscriber<Event>
    /// The same one, for a call during which the seat holds it.
    @usableFromInline let called: Unmanaged<Subscriber<Event>>

    @inlinable init(_ subscriber: Subscriber<Event>) {
      self.subscriber = subscriber
      called = .passUnretained(subscriber)
    }
  }

  @usableFromInline var seats = Slots()
  @usableFromInline var nextID: UInt64 = 0

  @inlinable init() {}

  @inlinable var count: Int { seats.count }

  @inlinable mutating func append(_ subscriber: Subscriber<Event>) -> UInt64 {
    defer { nextID += 1 }
    seats.insert(Seat(subscriber), for: nextID)
    return nextID
  }

  @inlinable mutating func remove(_ id: UInt64) -> Subscriber<Event>? {
    seats.remove(id)?.subscriber
  }
}
