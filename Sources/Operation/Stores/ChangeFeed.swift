import Synchronization

/// Collects what happens in a client for a reader that takes it from time to time.
///
/// An ``EventSender`` fills it while there is a reader. Then a store that changes is listed once until the
/// reader takes the list, however often it changes, and the first events after that are kept. So what
/// the program pays does not depend on the speed of the reader. A listed store is retained.
///
/// The lock guards the lists.
final class ChangeFeed: Sendable {
  /// What has happened since the reader took the changes before.
  struct Changes: Sendable {
    /// The stores that have changed, were added or were removed, each once.
    fileprivate(set) var stores: [any ErasedOperationStore] = []
    fileprivate(set) var events: [OperationClientEvent] = []
    fileprivate(set) var droppedEventCount = 0
    /// The counts of all events, also of those that were dropped.
    fileprivate(set) var counts = OperationStatistics.Counts()
    fileprivate var reader: OperationTaskID?
  }

  /// The number of events that are kept.
  static let eventLimit = 1_000

  /// `nil` without a reader.
  private let changes = Mutex<Changes?>(nil)
  private let hasAllEvents = Atomic(false)

  /// Whether further events are only counted until the reader takes the changes.
  var isFull: Bool { hasAllEvents.load(ordering: .relaxed) }

  /// Returns the identifier of a new reader. An earlier one takes nothing any more.
  func begin() -> OperationTaskID {
    let reader = OperationTaskID.next()
    let replaced = remove { exchange(&$0, with: Changes(reader: reader)) }
    hasAllEvents.store(false, ordering: .relaxed)
    withExtendedLifetime(replaced) {}
    return reader
  }

  func end(_ reader: OperationTaskID) {
    withExtendedLifetime(remove { $0?.reader == reader ? $0.take() : nil }) {}
  }

  /// Removes changes. Stores that change from now on are listed again.
  private func remove(_ body: (inout Changes?) -> Changes?) -> Changes? {
    changes.withLock { changes in
      let removed = body(&changes)
      // Before the next reader begins.
      for store in removed?.stores ?? [] { store.use.noteUnlisted() }
      return removed
    }
  }

  /// Lists a store that has changed. Called without its lock.
  func append(_ store: some ErasedOperationStore) {
    guard store.use.noteListed() else { return }
    changes.withLock { changes in
      changes?.stores.append(store)
      // The reader has left meanwhile.
      if changes == nil { store.use.noteUnlisted() }
    }
  }

  func append(_ event: OperationClientEvent) {
    changes.withLock { changes in
      changes?.counts.add(event.occurrence, isEviction: event.isEviction)
      if changes?.events.count ?? 0 < Self.eventLimit {
        changes?.events.append(event)
      } else {
        changes?.droppedEventCount += 1
        hasAllEvents.store(true, ordering: .relaxed)
      }
    }
  }

  /// Counts an event that is not kept.
  func count(_ occurrence: OperationClientEvent.Occurrence) {
    changes.withLock { changes in
      changes?.counts.add(occurrence)
      changes?.droppedEventCount += 1
    }
  }

  /// Returns what has happened since the last call. A store that changes from now on is listed again.
  func take(_ reader: OperationTaskID) -> Changes {
    let taken = remove { changes in
      guard let taken = changes, taken.reader == reader else { return nil }
      changes = Changes(reader: reader)
      hasAllEvents.store(false, ordering: .relaxed)
      return taken
    }
    return taken ?? Changes()
  }
}
