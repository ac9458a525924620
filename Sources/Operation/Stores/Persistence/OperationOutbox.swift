import FoundationEssentials
public import ReactiveStreams
import Synchronization

/// The calls of persisted mutations that have not ended.
///
/// `client.outbox` is the outbox of a client. A call is in the storage before its request is called, and
/// leaves it when the call has ended, with a value or a failure, or was cancelled. When the program ends
/// before, or the client is shut down, the call stays, and ``OperationClient/resumeMutations(_:)`` makes it
/// again in the next program. A resumed call that fails stays here, as nobody awaits it.
public final class OperationOutbox: Sendable {
  /// What makes calls of one mutation again.
  typealias Resumption = @Sendable (OutboxEntry) async throws -> Void

  private let shell = DeliveryShell(OutboxMachine())
  private let writer: StorageWriter
  private let clock: any OperationClock
  private let closing: Broadcast<Never>
  private let resumptions = Mutex<[String: Resumption]>([:])
  /// The number of the last call in the storage when it was read.
  private let lastSaved = Mutex<Int?>(nil)
  /// The last reading of the storage. Two at once could both list a call.
  private let reading = Mutex<Task<Void, any Error>?>(nil)

  /// - Parameter closing: Ends when the client is shut down.
  init(_ storage: any OperationStorage, clock: any OperationClock, closing: Broadcast<Never>) {
    self.clock = clock
    self.closing = closing
    writer = StorageWriter(storage, clock: clock, delay: .zero)
  }

  /// The calls that have not ended, in the order in which they were made. Those of earlier programs are
  /// among them once ``load()`` or ``OperationClient/resumeMutations(_:)`` was called.
  public var calls: [OutboxCall] { shell.withLock { $0.calls } }

  /// The calls, as a stream: the present ones, and those after each change; the newest ones win. It ends
  /// when the client is shut down.
  public var values: StateStream<[OutboxCall]> {
    StateStream(
      StreamSource { [shell, closing] handler in
        let calls = shell.subscribe({ handler(.element($0)) }) {
          $0.deliveries.subscribe($1, initially: $0.calls)
        }
        return .combined(calls, closing.subscribeToSignals { _ in handler(.finished) })
      }, areEqual: ==)
  }

  /// Reads the calls of earlier programs, which are listed then. It resumes none.
  ///
  /// A call that cannot be decoded is set aside, and reported.
  ///
  /// - Throws: What the storage throws.
  nonisolated(nonsending) public func load() async throws {
    let task = reading.withLock { last in
      let task = Task(executorPreference: clock.executor) { [self, last] in
        _ = await last?.result
        try await read()
      }
      last = task
      return task
    }
    try await task.value
  }

  private func read() async throws {
    for key in try await keys().sorted() where !shell.withLock({ $0.contains(key) }) {
      // A call that is not listed has ended, and is still to be removed.
      if writer.isPending(key) { continue }
      do {
        guard let saved = try await writer.storage.load(key) else { continue }
        let call = try OutboxCall(decoding: saved)
        shell.commit { $0.add(OutboxEntry(key), call) }
      } catch let error as DecodingError {
        try? await writer.storage.setAside(key)
        OperationIssue.report(.unreadableEntry, "The call \(key) was set aside: \(error)")
      } catch let error as StorageError where error.isAboutEntry {
        OperationIssue.report(.unreadableEntry, "A waiting call is lost: \(error)")
      }
      // Any other error is thrown: a later call of the same scope must not overtake this one.
    }
  }

  /// Makes a call again that waits or has failed, if its mutation is registered.
  ///
  /// - Returns: Whether the call is being made.
  @discardableResult
  public func retry(_ id: OutboxCall.ID) -> Bool {
    guard let (entry, call) = shell.withLock({ $0.listed(id) }),
      let resumption = resumptions.withLock({ $0[call.mutation] })
    else { return false }
    return resume(entry, by: resumption)
  }

  /// Removes a call, which is not made again. One that runs is cancelled.
  public func discard(_ id: OutboxCall.ID) {
    guard let (entry, _) = shell.withLock({ $0.listed(id) }) else { return }
    // No run of the call begins after that.
    remove(entry)?()
  }

  /// Waits until the storage has what is listed here.
  nonisolated(nonsending) func flush() async throws { try await writer.flush() }
}

// MARK: - Calls of this program

extension OperationOutbox {
  /// Returns the number of a call that is made now, by which calls are sorted.
  func nextTicket() -> Int { shell.withLock { $0.nextTicket() } }

  /// Saves a call, and returns when it is in the storage, or when that has failed.
  func enter(
    _ call: OutboxCall, ticket: Int, _ run: OperationTaskID, cancel: @escaping @Sendable () -> Void
  ) async -> OutboxEntry {
    let entry = OutboxEntry(call.id, number: await base() + ticket)
    change(entry) { $0.add(entry, call, run: run, cancel: cancel) }
    // The writer reports a failure and tries again. The program continues.
    try? await writer.flush()
    return entry
  }

  /// The run of a resumed call begins.
  func begin(
    _ entry: OutboxEntry, _ run: OperationTaskID, cancel: @escaping @Sendable () -> Void
  ) -> Bool {
    change(entry) { $0.begin(entry, run, cancel: cancel) }
  }

  /// The call that a run makes.
  func entry(of run: OperationTaskID) -> OutboxEntry? { shell.withLock { $0.entry(of: run) } }

  /// Notes that a further attempt begins.
  func noteAttempt(of entry: OutboxEntry) {
    change(entry) { $0.update(entry) { $0.attempts += 1 } }
  }

  /// Removes a call that has ended.
  ///
  /// - Parameter run: The run that has ended it. It does nothing if another one makes the call by now.
  /// - Returns: What cancels its run.
  @discardableResult
  func remove(
    _ entry: OutboxEntry, by run: OperationTaskID? = nil
  ) -> (@Sendable () -> Void)? {
    // It remains known until its removal is noted, or a reading of the storage would list it again.
    guard change(entry, { $0.end(entry, by: run) }) else { return nil }
    return shell.withLock { $0.drop(entry) }
  }

  /// The run of a resumed call has failed, or the call waits again because the client is shut down.
  func suspend(_ entry: OutboxEntry, as status: OutboxCall.Status, by run: OperationTaskID) {
    shell.commit { $0.suspend(entry, as: status, by: run) }
  }

  /// The call of an entry; `nil` if it has ended.
  func call(of entry: OutboxEntry) -> OutboxCall? { shell.withLock { $0.call(of: entry) } }

  /// Changes a call that has not ended, and has the change saved.
  @discardableResult
  private func change(
    _ entry: OutboxEntry, _ transition: (inout OutboxMachine) -> Bool
  ) -> Bool {
    let isChanged = shell.withLock { transition(&$0) }
    // Before subscribers are notified, one of which may flush.
    if isChanged {
      // Read when it is written: of two threads the later one may note its change first. A call that
      // has ended is removed.
      writer.note(
        SavedItem(key: entry.key, owner: ObjectIdentifier(entry)) { [shell] in
          SavedChange(mark: [], entry: shell.withLock { $0.call(of: entry) }?.encoded)
        })
    }
    shell.commit { _ in }
    return isChanged
  }

  /// The number after which the calls of this program are sorted.
  private func base() async -> Int {
    if let last = lastSaved.withLock({ $0 }) { return last }
    var last = 0
    do { last = try await keys().compactMap(OutboxEntry.number).max() ?? 0 } catch {
      // More than any count, so that the calls that are there come first.
      last = Int(max(0, min(9e15, clock.now().timeIntervalSinceReferenceDate * 1_000_000)))
      OperationIssue.report(.storageFailure, "The waiting calls were not listed: \(error)")
    }
    return lastSaved.withLock { saved in
      let found = saved ?? last
      saved = found
      return found
    }
  }

  /// The keys of the calls in the storage. A file that is no call is moved aside by the storage, reported,
  /// and then the others are listed.
  nonisolated(nonsending) private func keys() async throws -> [String] {
    var last: StorageError?
    while true {
      do { return try await writer.storage.keys(withPrefix: StorageKey.calls) } catch {
        // The same again: the storage has not moved it aside.
        guard let error = error as? StorageError, error.isAboutEntry, error != last else {
          throw error
        }
        last = error
        OperationIssue.report(.unreadableEntry, "A waiting call is lost: \(error)")
      }
    }
  }
}

// MARK: - Resuming

extension OperationOutbox {
  /// Registers a mutation whose calls can be made again.
  func register(_ name: String, _ resumption: @escaping Resumption) {
    let old = resumptions.withLock { $0.updateValue(resumption, forKey: name) }
    withExtendedLifetime(old) {}
  }

  /// Makes the calls that wait again whose mutations are registered, in their order.
  ///
  /// - Parameter maxAges: The age from which a call of a mutation is dropped.
  func resume(maxAges: [String: Duration]) {
    for (entry, call) in shell.withLock({ $0.waiting }) {
      if let maxAge = maxAges[call.mutation], clock.now().duration(since: call.date) >= maxAge {
        OperationIssue.report(
          .unresumedCall, "A call of \(call.mutation) is older than \(maxAge), and is dropped.")
        remove(entry)
      } else if let resumption = resumptions.withLock({ $0[call.mutation] }) {
        resume(entry, by: resumption)
      } else {
        OperationIssue.report(
          .unresumedCall,
          """
          A call of \(call.mutation) waits, and no mutation of this name is registered; it stays until \
          one is.
          """)
      }
    }
  }

  /// Makes a call again, unless it is being made. Returns whether it does.
  @discardableResult
  private func resume(_ entry: OutboxEntry, by resumption: @escaping Resumption) -> Bool {
    guard let number = shell.commit({ $0.resume(entry) }) else { return false }
    // At once up to its first suspension, so that calls keep their order.
    TaskNode.withoutCurrent {
      _ = Task.immediate { [shell] in
        try? await resumption(entry)
        // Its run was not begun.
        shell.commit { $0.suspendIfIdle(entry, number) }
      }
    }
    return true
  }
}

/// The machine of an outbox: the calls that have not ended, and its subscribers.
struct OutboxMachine: DeliveryMachine {
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
  private var lastTicket = 0

  var calls: [OutboxCall] { listed.filter { !$0.hasEnded }.map(\.call) }

  var waiting: [(OutboxEntry, OutboxCall)] {
    listed.filter { $0.call.status == .waiting && !$0.hasEnded }.map { ($0.entry, $0.call) }
  }

  mutating func nextTicket() -> Int {
    lastTicket += 1
    return lastTicket
  }

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

  func listed(_ id: OutboxCall.ID) -> (OutboxEntry, OutboxCall)? {
    listed.first { $0.call.id == id && !$0.hasEnded }.map { ($0.entry, $0.call) }
  }

  func call(of entry: OutboxEntry) -> OutboxCall? { index(of: entry).map { listed[$0].call } }

  private func index(of entry: OutboxEntry) -> Int? {
    listing(of: entry).flatMap { listed[$0].hasEnded ? nil : $0 }
  }

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

  /// A call is taken up again. Returns the number of this resumption, or `nil` if the call runs or has
  /// ended.
  mutating func resume(_ entry: OutboxEntry) -> Int? {
    guard let index = index(of: entry), listed[index].call.status != .running else { return nil }
    // A run that has failed is not the one of the call any more.
    (listed[index].run, listed[index].cancel) = (nil, nil)
    listed[index].resumptions += 1
    update(entry) { $0.status = .running }
    return listed[index].resumptions
  }

  /// The run of a resumed call begins.
  mutating func begin(
    _ entry: OutboxEntry, _ run: OperationTaskID, cancel: @escaping @Sendable () -> Void
  ) -> Bool {
    guard let index = index(of: entry) else { return false }
    listed[index].run = run
    listed[index].cancel = cancel
    return update(entry) { $0.attempts += 1 }
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
  mutating func suspendIfIdle(_ entry: OutboxEntry, _ resumption: Int) {
    guard let index = index(of: entry), listed[index].cancel == nil,
      listed[index].resumptions == resumption, listed[index].call.status == .running
    else { return }
    update(entry) { $0.status = .waiting }
  }

  private mutating func notify() {
    // A list for each change is too much where nobody reads it.
    if deliveries.subscriberCount == 0 { return }
    let calls = calls
    deliveries.append(calls)
  }
}
