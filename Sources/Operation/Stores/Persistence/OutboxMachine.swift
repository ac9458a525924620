import ReactiveStreams

/// The machine of an outbox: the calls that have not ended, and its subscribers.
struct OutboxMachine: DeliveryMachine {
  /// A registered mutation: what makes its calls again, and the age from which they are dropped.
  struct Registration: Sendable {
    let maxAge: Duration?
    let resume: OperationOutbox.Resumption
  }

  /// A call that has not ended, and its mutation, if that is registered.
  typealias PendingCall = (entry: OutboxEntry, call: OutboxCall, registration: Registration?)

  /// The run that makes a call, and what cancels it.
  struct Run: Sendable {
    let id: OperationTaskID
    let cancel: @Sendable () -> Void
  }

  private struct Listed: Sendable {
    var call: OutboxCall
    /// `nil` while no run makes the call.
    var run: Run?
    /// How often it was resumed. A resumption may end when the next one has begun.
    var resumptions = 0
  }

  var deliveries = DeliveryQueue<[OutboxCall]>()
  private var listed = SlotList<OutboxEntry, Listed>()
  /// The calls that have ended and whose removals are still to be noted.
  private var ended: [OutboxEntry: Listed] = [:]
  private(set) var lastTicket = 0
  /// The tickets of calls that are not listed yet.
  private var openTickets: Set<Int> = []
  /// The registered mutations by their names.
  var registered: [String: Registration] = [:]
  /// The number of the last call in the storage when it was read.
  var lastSaved: Int?
  /// The end of the last reading of the storage. Two at once could both list a call, or look for the last one.
  var endOfReading: OneShot<Bool>?

  /// The calls that have not ended, in the order in which they were made.
  var calls: [OutboxCall] { listed.elements.map(\.call) }

  var waiting: [PendingCall] { pendingCalls { $0.status == .waiting } }

  func pendingCall(_ id: OutboxCall.ID) -> PendingCall? { pendingCalls { $0.id == id }.first }

  private func pendingCalls(where condition: (OutboxCall) -> Bool) -> [PendingCall] {
    listed.slots.compactMap { slot in
      guard let call = slot.element?.call, condition(call) else { return nil }
      return (slot.id, call, registered[call.mutation])
    }
  }

  mutating func nextTicket() -> Int {
    lastTicket += 1
    openTickets.insert(lastTicket)
    return lastTicket
  }

  mutating func end(ticket: Int) { openTickets.remove(ticket) }

  /// Whether a call with a ticket up to the given one is not listed yet.
  func hasOpenTicket(upTo last: Int) -> Bool { openTickets.contains { $0 <= last } }

  /// Whether a call is listed, or has ended and its removal is still to be noted.
  func contains(_ entry: OutboxEntry) -> Bool { listed[entry] != nil || ended[entry] != nil }

  func entry(of run: OperationTaskID) -> OutboxEntry? {
    listed.slots.first { $0.element?.run?.id == run }?.id
  }

  func call(of entry: OutboxEntry) -> OutboxCall? { listed[entry]?.call }

  /// Whether a resumed call has not ended, and was not resumed once more.
  func isCurrent(_ call: ResumedCall) -> Bool { listed[call.entry]?.resumptions == call.resumption }

  @discardableResult
  mutating func add(_ entry: OutboxEntry, _ call: OutboxCall, run: Run? = nil) -> Bool {
    let new = Listed(call: call, run: run)
    if listed.update(entry, { $0 = new }) == nil { listed.insert(new, for: entry) }
    notify()
    return true
  }

  /// Changes a call that has not ended and that satisfies a condition. Returns whether there is
  /// one.
  @discardableResult
  private mutating func change(
    _ entry: OutboxEntry, where condition: (Listed) -> Bool = { _ in true },
    _ change: (inout Listed) -> Void
  ) -> Bool {
    guard let listing = listed[entry], condition(listing) else { return false }
    listed.update(entry, change)
    notify()
    return true
  }

  /// A further attempt begins.
  mutating func noteAttempt(of entry: OutboxEntry) -> Bool {
    change(entry) { $0.call.attempts += 1 }
  }

  /// A call is taken up again. Returns `nil` if it runs or has ended.
  ///
  /// - Parameter isRetry: Whether it is also taken up after a failure.
  mutating func resume(_ entry: OutboxEntry, isRetry: Bool = true) -> ResumedCall? {
    var resumption = 0
    let isResumable = { (listing: Listed) in
      listing.call.status == .waiting || isRetry && listing.call.status != .running
    }
    let isResumed = change(entry, where: isResumable) {
      // A run that has failed is not the one of the call any more.
      $0.run = nil
      $0.call.status = .running
      $0.resumptions += 1
      resumption = $0.resumptions
    }
    return isResumed ? ResumedCall(entry: entry, resumption: resumption) : nil
  }

  /// The run of a resumed call begins. Returns `false` if the call has ended, or was resumed once more.
  mutating func begin(_ call: ResumedCall, _ run: Run) -> Bool {
    change(call.entry, where: { $0.resumptions == call.resumption }) {
      $0.run = run
      $0.call.attempts += 1
      // The resumption may have returned before, and then the call waits.
      $0.call.status = .running
    }
  }

  /// The run of a resumed call has failed or is cut off.
  mutating func suspend(
    _ entry: OutboxEntry, as status: OutboxCall.Status, by run: OperationTaskID
  ) {
    change(entry, where: { $0.run?.id == run }) { $0.call.status = status }
  }

  /// A call ends. Returns `false` if it does not, or has ended before.
  ///
  /// - Parameters:
  ///   - run: The run that ends the call: nothing changes if another run makes it by now.
  ///   - mustWait: Whether the call ends only if it waits.
  mutating func end(
    _ entry: OutboxEntry, by run: OperationTaskID? = nil, ifWaiting mustWait: Bool = false
  ) -> Bool {
    guard let listing = listed[entry], run == nil || run == listing.run?.id,
      !mustWait || listing.call.status == .waiting
    else { return false }
    ended[entry] = listed.remove(entry)
    notify()
    return true
  }

  /// Removes a call that has ended. Returns what cancels its run, and the call, which is released without the
  /// lock: bytes can have a deallocator of the user.
  mutating func drop(
    _ entry: OutboxEntry
  ) -> (cancel: (@Sendable () -> Void)?, call: OutboxCall)? {
    ended.removeValue(forKey: entry).map { ($0.run?.cancel, $0.call) }
  }

  /// A resumed call whose run was never begun waits again, unless it was resumed once more.
  mutating func suspendIfIdle(_ call: ResumedCall) {
    let isIdle = { (listing: Listed) in
      listing.resumptions == call.resumption && listing.run == nil
        && listing.call.status == .running
    }
    change(call.entry, where: isIdle) { $0.call.status = .waiting }
  }

  private mutating func notify() {
    // Without a subscriber no list is made.
    if deliveries.subscriberCount == 0 { return }
    let calls = calls
    deliveries.append(calls)
  }
}
