import Synchronization

/// One handler, and whether it is still to be called.
package final class Subscriber<Event: Sendable>: Listener {
  let handler: @Sendable (Event) -> Void
  let isActive = Atomic(true)

  package init(_ handler: @escaping @Sendable (Event) -> Void) {
    self.handler = handler
  }

  package func receive(_ event: Event) {
    if isActive.load(ordering: .acquiring) { handler(event) }
  }

  /// Ends the calls: one that has not begun when this returns does not begin.
  package func deactivate() {
    isActive.store(false, ordering: .releasing)
  }
}

/// The subscribers of one delivery queue in the order in which they came.
///
/// A thread that tells them something can be lent the list, which costs no count of a reference to
/// it. Those who come meanwhile have seats of their own until it is back; who goes is noted, and must
/// have been deactivated.
struct SubscriberList<Event: Sendable>: Sendable {
  typealias Slots = SlotList<UInt64, Seat>

  struct Seat: Sendable {
    let subscriber: Subscriber<Event>
    /// The same one, for a call during which the seat holds it.
    let called: Unmanaged<Subscriber<Event>>

    init(_ subscriber: Subscriber<Event>) {
      self.subscriber = subscriber
      called = .passUnretained(subscriber)
    }
  }

  var seats = Slots()
  var nextID: UInt64 = 0
  /// How many of those who are lent have not gone.
  var lentCount = 0
  /// Which of those who were lent have gone.
  var departed: [UInt64] = []

  init() {}

  var count: Int { seats.count + lentCount }

  mutating func append(_ subscriber: Subscriber<Event>) -> UInt64 {
    defer { nextID += 1 }
    seats.insert(Seat(subscriber), for: nextID)
    return nextID
  }

  /// Takes out a subscriber who is there, and gives him, unless he is lent.
  mutating func remove(_ id: UInt64) -> Subscriber<Event>? {
    if let seat = seats.remove(id) { return seat.subscriber }
    if lentCount > 0 {
      lentCount -= 1
      departed.append(id)
    }
    return nil
  }

  /// Lends those who are there.
  mutating func lend() -> Slots {
    lentCount = seats.count
    var lent = Slots()
    swap(&seats, &lent)
    return lent
  }

  /// Takes those back who were lent, and leaves those who have gone.
  mutating func takeBack(_ lent: inout Slots) {
    swap(&seats, &lent)
    lentCount = 0
    if lent.count > 0 || !departed.isEmpty { takeBackChanged(&lent) }
  }

  mutating func takeBackChanged(_ new: inout Slots) {
    for slot in new.slots {
      if let seat = slot.element { seats.insert(seat, for: slot.id) }
    }
    var gone = Slots()
    for id in departed {
      if let seat = seats.remove(id) { gone.insert(seat, for: id) }
    }
    departed = []
    swap(&new, &gone)
  }
}
