public import Synchronization

/// One handler, and whether it may still be called.
// Without the annotations of this file the benchmark write per subscriber is over its limits.
@usableFromInline package final class Subscriber<Event: Sendable>: Sendable {
  @usableFromInline let handler: @Sendable (Event) -> Void
  @usableFromInline let isActive = Atomic(true)
  /// Whether it needs only the newest state, and no other event.
  @usableFromInline let wantsNewest: Bool

  @inlinable package init(
    wantsNewest: Bool = false, _ handler: @escaping @Sendable (Event) -> Void
  ) {
    self.handler = handler
    self.wantsNewest = wantsNewest
  }

  @inlinable package func receive(_ event: Event) {
    if isActive.load(ordering: .acquiring) { handler(event) }
  }

  /// Ends the calls: a call that has not begun when this returns never begins.
  package func deactivate() { isActive.store(false, ordering: .releasing) }
}
