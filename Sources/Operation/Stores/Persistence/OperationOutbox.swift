import FoundationEssentials
public import ReactiveStreams

/// The calls of persisted mutations that have not ended.
///
/// `client.outbox` is the outbox of a client. A call is in the storage before its request is called, and
/// leaves it when the call has ended, with a value or a failure, or was cancelled. When the program ends
/// before, or the client is shut down, the call stays, and ``OperationClient/resumeMutations(_:)`` makes it
/// again in the next program. A resumed call that fails stays here, because no caller awaits it.
public final class OperationOutbox: Sendable {
  /// What makes calls of one mutation again.
  typealias Resumption = @Sendable (ResumedCall) async throws -> Void

  private let shell = DeliveryShell(OutboxMachine())
  private let writer: StorageWriter
  private let clock: any OperationClock
  private let closing: Broadcast<Never>
  /// Notifies waiting tasks of the end of each ticket.
  private let ticketEnds = Broadcast<Void>()

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
    StateStream(shell.source(until: closing) { $0.calls }, areEqual: ==)
  }

  /// Reads the calls of earlier programs, which are listed then. It resumes none.
  ///
  /// A call that cannot be decoded is set aside, and reported.
  ///
  /// - Throws: What the storage throws.
  nonisolated(nonsending) public func load() async throws {
    try await afterLastReading { [self] in try await read() }
  }

  /// Reads the storage when the last reading has ended.
  private func afterLastReading(_ read: @escaping @Sendable () async throws -> Void) async throws {
    let end = OneShot<Bool>()
    let last = shell.withLock { exchange(&$0.endOfReading, with: end) }
    try await Task(executorPreference: clock.executor) {
      _ = await last?.wait()
      defer { end.finish(true) }
      try await read()
    }.value
  }

  private func read() async throws {
    for key in try await keys().sorted() {
      let entry = OutboxEntry(key)
      if shell.withLock({ $0.contains(entry) }) { continue }
      // A call that is not listed has ended, and is still to be removed.
      if writer.isPending(key) { continue }
      do {
        guard let saved = try await writer.storage.load(key) else { continue }
        let call = try OutboxCall(decoding: saved)
        shell.commit { $0.add(entry, call) }
      } catch let error as DecodingError {
        let isSetAside = (try? await writer.storage.setAside(key)) != nil
        let event = isSetAside ? "was set aside" : "cannot be decoded"
        OperationIssue.report(.unreadableEntry, "The call \(key) \(event): \(error)")
      } catch let error as StorageError where error.isAboutEntry {
        OperationIssue.report(.unreadableEntry, "A waiting call is lost: \(error)")
      }
      // Any other error is thrown: a later call of the same scope must not overtake this one.
    }
  }

  /// Makes a waiting or failed call again, if its mutation is registered.
  ///
  /// A call whose arguments cannot be decoded is reported, and waits again. So does one that is made after the
  /// client was shut down, without a report.
  ///
  /// - Returns: Whether this takes the call up: `false` if it runs already, too.
  @discardableResult
  public func retry(_ id: OutboxCall.ID) -> Bool {
    guard let call = shell.withLock({ $0.pendingCall(id) }), let registration = call.registration
    else { return false }
    return resume(call.entry, by: registration.resume)
  }

  /// Removes a call, which is not made again. One that runs is cancelled.
  public func discard(_ id: OutboxCall.ID) {
    guard let call = shell.withLock({ $0.pendingCall(id) }) else { return }
    // No run of the call begins after that. One that has just begun calls its request in a cancelled task, if
    // its failure cannot be a cancellation.
    remove(call.entry)?()
  }

  /// Waits until the storage has what is listed here, and the calls that were made before but are not listed
  /// yet.
  nonisolated(nonsending) func flush() async throws {
    let last = shell.withLock { $0.lastTicket }
    let areListed = { @Sendable [shell] in !shell.withLock { $0.hasOpenTicket(upTo: last) } }
    _ = await wait(until: areListed) { [ticketEnds] notify in
      ticketEnds.subscribe { notify() }
    }
    if !areListed() { throw CancellationError() }
    try await writer.flush()
  }
}

// MARK: - Calls of this program

extension OperationOutbox {
  /// Returns the number of a call that is made now, by which calls are sorted.
  ///
  /// A flush waits for the call until ``end(ticket:)`` or ``save(ticket:)`` is called.
  func nextTicket() -> Int { shell.withLock { $0.nextTicket() } }

  /// A call is listed, or is not saved.
  func end(ticket: Int) {
    shell.withLock { $0.end(ticket: ticket) }
    ticketEnds.send(())
  }

  /// Lists a call.
  func enter(_ call: OutboxCall, ticket: Int, _ run: OutboxMachine.Run) async -> OutboxEntry {
    let entry = OutboxEntry(call.id, number: await base() + ticket)
    change(entry) { $0.add(entry, call, run: run) }
    return entry
  }

  /// Saves a call that was listed, and returns when it is in the storage, or when that has failed.
  func save(ticket: Int) async {
    end(ticket: ticket)
    // The writer reports a failure and tries again. The program continues. A run that is cancelled waits,
    // too: it calls its request even then, if its failure cannot be a cancellation.
    let saving = Task(executorPreference: clock.executor) { [writer] in try await writer.flush() }
    _ = await saving.result
  }

  /// Whether a resumed call has not ended, and was not resumed once more.
  func isCurrent(_ call: ResumedCall) -> Bool { shell.withLock { $0.isCurrent(call) } }

  /// The run of a resumed call begins.
  func begin(_ call: ResumedCall, _ run: OutboxMachine.Run) -> Bool {
    change(call.entry) { $0.begin(call, run) }
  }

  /// The call that a run makes.
  func entry(of run: OperationTaskID) -> OutboxEntry? { shell.withLock { $0.entry(of: run) } }

  /// Notes that a further attempt begins.
  func noteAttempt(of entry: OutboxEntry) { change(entry) { $0.noteAttempt(of: entry) } }

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
    let dropped = shell.withLock { $0.drop(entry) }
    return withExtendedLifetime(dropped) { dropped?.cancel }
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
        SavedItem(key: entry.key, owner: ObjectIdentifier(shell)) { [shell] in
          SavedChange(entry: shell.withLock { $0.call(of: entry) }?.encoded)
        })
    }
    shell.commit { _ in }
    return isChanged
  }

  /// The number after which the calls of this program are sorted.
  private func base() async -> Int {
    if let last = shell.withLock({ $0.lastSaved }) { return last }
    try? await afterLastReading { [self] in
      if shell.withLock({ $0.lastSaved }) != nil { return }
      do { _ = try await keys() } catch {
        // More than any count, so that the calls that are there come first.
        let last = Int(1e15 + max(0, min(8e15, clock.now().timeIntervalSince1970 * 1_000_000)))
        OperationIssue.report(.storageFailure, "The waiting calls were not listed: \(error)")
        shell.withLock { $0.lastSaved = last }
      }
    }
    return shell.withLock { $0.lastSaved ?? 0 }
  }

  /// The keys of the calls in the storage. The first listing decides after which number the calls of this program
  /// are sorted: a later one can fail.
  nonisolated(nonsending) private func keys() async throws -> [String] {
    let keys = try await writer.storage.readableKeys(
      withPrefix: StorageKey.calls, reporting: "A waiting call is lost")
    shell.withLock { $0.lastSaved = $0.lastSaved ?? keys.compactMap(OutboxEntry.number).max() ?? 0 }
    return keys
  }
}

// MARK: - Resuming

extension OperationOutbox {
  /// Registers a mutation whose calls can be made again.
  ///
  /// - Parameter maxAge: The age from which a call is dropped.
  func register(_ name: String, maxAge: Duration?, _ resumption: @escaping Resumption) {
    let new = OutboxMachine.Registration(maxAge: maxAge, resume: resumption)
    withExtendedLifetime(shell.withLock { $0.registered.updateValue(new, forKey: name) }) {}
  }

  /// Loads the calls, and makes the waiting ones again, in their order, if their mutations are registered.
  nonisolated(nonsending) func resume() async throws {
    // Of two resumptions at once, one could make a call before an earlier one that the other has taken up.
    try await afterLastReading { [self] in
      try await read()
      resumeWaiting()
    }
  }

  private func resumeWaiting() {
    for (entry, call, registration) in shell.withLock({ $0.waiting }) {
      if let maxAge = registration?.maxAge, clock.now().duration(since: call.date) >= maxAge {
        // Another thread may have taken it up since.
        guard change(entry, { $0.end(entry, ifWaiting: true) }) else { continue }
        withExtendedLifetime(shell.withLock { $0.drop(entry) }) {}
        OperationIssue.report(
          .unresumedCall, "A call of \(call.mutation) is older than \(maxAge), and is dropped.")
      } else if let registration {
        // Another resumption may have made it since.
        resume(entry, by: registration.resume, isRetry: false)
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
  private func resume(
    _ entry: OutboxEntry, by resumption: @escaping Resumption, isRetry: Bool = true
  ) -> Bool {
    guard let call = shell.commit({ $0.resume(entry, isRetry: isRetry) }) else { return false }
    // At once up to its first suspension, so that calls keep their order.
    CurrentWork.without {
      _ = Task.immediate { [shell] in
        try? await resumption(call)
        // Its run was not begun.
        shell.commit { $0.suspendIfIdle(call) }
      }
    }
    return true
  }
}
