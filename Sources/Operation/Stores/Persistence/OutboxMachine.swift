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

  private struct Listed: Sendable {
    let entry: OutboxEntry
    var call: OutboxCall
    /// The run of the call, and what cancels it; `nil` if there is none.
    var run: OperationTaskID?
    var cancel: (@Sendable () -> Void)?
    /// How often it was resumed. A resumption may end when the next one has begun.
    var resumptions = 0
    /// Whether its removal is still to be noted.
    var hasEnded = false
  }

  var deliveries = DeliveryQueue<[OutboxCall]>()
  /// Sorted by their keys.
  private var listed: [Listed] = []
  private(set) var lastTicket = 0
  /// The tickets of calls that are not listed yet.
  private var openTickets: Set<Int> = []
  /// The registered mutations by their names.
  var registered: [String: Registration] = [:]
  /// The number of the last call in the storage when it was read.
  var lastSaved: Int?
  /// The end of the last reading of the storage. Two at once could both list a call, or look for the last one.
  var endOfReading: OneShot<Bool>?

  var calls: [OutboxCall] { listed.filter { !$0.hasEnded }.map(\.call) }

  var waiting: [PendingCall] {
    listed.filter { $0.call.status == .waiting && !$0.hasEnded }.map(pending)
  }

  private func pending(_ listed: Listed) -> PendingCall {
    (listed.entry, listed.call, registered[listed.call.mutation])
  }

  mutating func nextTicket() -> Int {
    lastTicket += 1
    openTickets.insert(lastTicket)
    return lastTicket
  }

  mutating func end(ticket: Int) { openTickets.remove(ticket) }

  /// Whether a call with a ticket up to the given one is not listed yet.
  func hasOpenTicket(upTo last: Int) -> Bool { openTickets.contains { $0 <= last } }

  func contains(_ key: String) -> Bool { listing(of: key) != nil }

  /// The position of the call with a key, whether it has ended or not.
  private func listing(of key: String) -> Int? {
    let position = position(of: key)
    return position < listed.count && listed[position].entry.key == key ? position : nil
  }

  /// The position of the first call whose key is not less than another one.
  private func position(of key: String) -> Int {
    var (low, high) = (0, listed.count)
    while low < high {
      let middle = (low + high) / 2
      if listed[middle].entry.key < key { low = middle + 1 } else { high = middle }
    }
    return low
  }

  func entry(of run: OperationTaskID) -> OutboxEntry? {
    listed.first { $0.run == run && !$0.hasEnded }?.entry
  }

  func listed(_ id: OutboxCall.ID) -> PendingCall? {
    listed.first { $0.call.id == id && !$0.hasEnded }.map(pending)
  }

  func call(of entry: OutboxEntry) -> OutboxCall? { index(of: entry).map { listed[$0].call } }

  private func index(of entry: OutboxEntry) -> Int? {
    listing(of: entry).flatMap { listed[$0].hasEnded ? nil : $0 }
  }

  /// The position of a call that has not ended and was not resumed once more.
  private func index(of call: ResumedCall) -> Int? {
    index(of: call.entry).flatMap { listed[$0].resumptions == call.resumption ? $0 : nil }
  }

  func isCurrent(_ call: ResumedCall) -> Bool { index(of: call) != nil }

  private func listing(of entry: OutboxEntry) -> Int? {
    listing(of: entry.key).flatMap { listed[$0].entry === entry ? $0 : nil }
  }

  @discardableResult
  mutating func add(
    _ entry: OutboxEntry, _ call: OutboxCall, run: OperationTaskID? = nil,
    cancel: (@Sendable () -> Void)? = nil
  ) -> Bool {
    let listing = Listed(entry: entry, call: call, run: run, cancel: cancel)
    listed.insert(listing, at: position(of: entry.key))
    notify()
    return true
  }

  /// Changes a call. Returns `false` if it has ended.
  @discardableResult
  mutating func update(_ entry: OutboxEntry, _ change: (inout OutboxCall) -> Void) -> Bool {
    guard let index = index(of: entry) else { return false }
    change(&listed[index].call)
    notify()
    return true
  }

  /// A call is taken up again. Returns `nil` if it runs or has ended.
  ///
  /// - Parameter isRetry: Whether it is also taken up after a failure.
  mutating func resume(_ entry: OutboxEntry, isRetry: Bool = true) -> ResumedCall? {
    guard let index = index(of: entry), listed[index].call.status != .running,
      isRetry || listed[index].call.status == .waiting
    else { return nil }
    // A run that has failed is not the one of the call any more.
    (listed[index].run, listed[index].cancel) = (nil, nil)
    listed[index].resumptions += 1
    update(entry) { $0.status = .running }
    return ResumedCall(entry, listed[index].resumptions)
  }

  /// The run of a resumed call begins. Returns `false` if the call has ended, or was resumed once more.
  mutating func begin(
    _ call: ResumedCall, _ run: OperationTaskID, cancel: @escaping @Sendable () -> Void
  ) -> Bool {
    guard let index = index(of: call) else { return false }
    listed[index].run = run
    listed[index].cancel = cancel
    return update(call.entry) {
      $0.attempts += 1
      // What shows the call may have returned before.
      $0.status = .running
    }
  }

  /// The run of a resumed call has failed or is cut off.
  mutating func suspend(
    _ entry: OutboxEntry, as status: OutboxCall.Status, by run: OperationTaskID
  ) {
    guard let index = index(of: entry), listed[index].run == run else { return }
    update(entry) { $0.status = status }
  }

  /// A call ends. Returns `false` if it has ended before, or if another run than the one that ends it makes
  /// it by now.
  mutating func end(_ entry: OutboxEntry, by run: OperationTaskID? = nil) -> Bool {
    guard let index = index(of: entry), run == nil || run == listed[index].run else { return false }
    listed[index].hasEnded = true
    notify()
    return true
  }

  /// Removes a call that has ended. Returns what cancels its run.
  mutating func drop(_ entry: OutboxEntry) -> (@Sendable () -> Void)? {
    listing(of: entry).flatMap { listed.remove(at: $0).cancel }
  }

  /// A resumed call whose run was never begun waits again, unless it was resumed once more.
  mutating func suspendIfIdle(_ call: ResumedCall) {
    guard let index = index(of: call), listed[index].cancel == nil,
      listed[index].call.status == .running
    else { return }
    update(call.entry) { $0.status = .waiting }
  }

  private mutating func notify() {
    // A list for each change is too much where nobody reads it.
    if deliveries.subscriberCount == 0 { return }
    let calls = calls
    deliveries.append(calls)
  }
}
