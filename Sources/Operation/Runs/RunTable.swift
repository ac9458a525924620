import ReactiveStreams

/// The part of a machine that holds the runs in flight and the leases on them.
///
/// A run is *held* while a caller awaits it, while there are observers and they hold it, or, before
/// its start, while a handle can start it. A run that is no longer held is removed: its epoch is over,
/// and what it yields or ends with later is dropped.
struct RunTable<Value: Sendable, Failure: Error, Payload: Sendable>: Sendable {
  struct Record: Sendable {
    /// The task, with the configuration that it runs with.
    var task: OperationTask<Value, Failure>
    /// The configuration to compare with new runs, if it differs from that of the task.
    var compared: OperationTaskConfiguration.Box?
    /// The number of callers that await the run.
    var awaiters = 0
    /// The number of handles that could start the run.
    var handles = 0
    var isHeldByObservers = false
    var isStarted = false
    /// The epoch in which the run was started.
    var startEpoch = 0
    var payload: Payload

    var id: OperationTaskID { task.id }
    var core: TaskCore<Value, Failure> { task.core }
    var run: OperationRun { OperationRun(id: id, cause: task.node.cause, context: task.context) }
    var context: OperationContext { (compared ?? task.box).configuration.context }

    /// Takes a lease. One that is not a mere handle starts the run. Returns whether it did.
    mutating func hold(_ lease: RunLease) -> Bool {
      switch lease {
      case .awaiter: awaiters += 1
      case .observers: isHeldByObservers = true
      case .handle: handles += 1
      }
      if lease == .handle || isStarted { return false }
      isStarted = true
      return true
    }

    typealias Leases = (awaiters: Int, observed: Int)

    fileprivate var leases: Leases { (awaiters, isHeldByObservers ? 1 : 0) }

    /// Whether the run is too old to be joined. A caller that restarts it can join it once its request was called:
    /// that is called again.
    func isOutdated(since epoch: Int, restarts: Bool = false) -> Bool {
      isStarted && startEpoch < epoch && !(restarts && task.node.hasCalledRequest)
    }

    fileprivate func isHeld(observerCount: Int) -> Bool {
      awaiters > 0 || (isHeldByObservers && observerCount > 0) || (!isStarted && handles > 0)
    }
  }

  enum Admission: Sendable {
    case new
    case join(TaskCore<Value, Failure>)
    /// The user's predicate has to compare the contexts without the lock. Its verdict is passed to
    /// the next call.
    case compare([RunCandidate])
  }

  private var table = SlotList<OperationTaskID, Record>()
  /// The number of callers that await a run.
  private var awaiterCount = 0
  /// The number of runs that the observers hold.
  private var observedCount = 0
  /// The runs by the hashes of their contexts; `nil` while there have been few of them.
  private var idsByHash: [Int: Set<OperationTaskID>]?

  /// The number of runs above which they are found by the hashes of their contexts.
  static var largestScannedCount: Int { 8 }

  var isEmpty: Bool { table.count == 0 }
  var count: Int { table.count }

  /// The runs, the oldest first.
  var records: some Sequence<Record> { table.slots.lazy.compactMap { $0.element } }

  /// The identifiers of the runs, the oldest first.
  var ids: [OperationTaskID] { records.map { $0.id } }

  subscript(id: OperationTaskID) -> Record? { table[id] }

  func contains(_ id: OperationTaskID) -> Bool { table.slot(of: id) != nil }

  /// The number of leases on the runs.
  func leaseCount(observerCount: Int) -> Int { awaiterCount + observedCount * observerCount }

  /// Counts the leases of a run that has changed, was inserted, or was removed.
  private mutating func countLeases(from old: Record.Leases, to new: Record.Leases) {
    awaiterCount += new.awaiters - old.awaiters
    observedCount += new.observed - old.observed
  }

  /// Decides whether a run in `context` joins one of the runs in flight.
  ///
  /// Only contexts with the same hash are compared. The hash calls the user's code, so callers compute
  /// it before they lock.
  ///
  /// - Parameters:
  ///   - epoch: A run that was started in an earlier one is too old to be joined.
  ///   - restarts: Whether it is joined nevertheless if its request was called, which is called again.
  func admit(
    _ context: OperationContext, rule: Deduplication, verdict: RunVerdict?, since epoch: Int = 0,
    restarts: Bool = false
  ) -> Admission {
    if isEmpty { return .new }
    switch rule {
    case .never: return .new
    case .equivalentContexts:
      let run = equivalentRun(to: context) { !$0.isOutdated(since: epoch, restarts: restarts) }
      return run.map { .join($0) } ?? .new
    case .by:
      let candidates = candidates(for: context) {
        !$0.isOutdated(since: epoch, restarts: restarts)
      }
      if candidates.isEmpty { return .new }
      guard let verdict, candidates.allSatisfy({ verdict.compared.contains($0.id) }) else {
        return .compare(candidates)
      }
      guard let match = verdict.match else { return .new }
      return table[match].map { .join($0.core) } ?? .compare(candidates)
    }
  }

  /// The oldest run in an equivalent context.
  private func equivalentRun(
    to context: OperationContext, where isNewEnough: (Record) -> Bool
  ) -> TaskCore<Value, Failure>? {
    let hash = context.valuesHash
    let ids = idsByHash.map { ($0[hash] ?? []).sorted() } ?? table.slots.map { $0.id }
    return ids.lazy.compactMap { table[$0] }.first {
      isNewEnough($0) && $0.context.valuesHash == hash && $0.context.isEquivalent(to: context)
    }?.core
  }

  /// The runs for the same pages: a user's predicate cannot see in a context which pages a run is for.
  private func candidates(
    for context: OperationContext, where isNewEnough: (Record) -> Bool
  ) -> [RunCandidate] {
    records.filter { $0.context.pageRunKind == context.pageRunKind && isNewEnough($0) }
      .map { RunCandidate(id: $0.id, context: $0.context) }
  }

  /// Inserts a run that is not in the table.
  mutating func insert(_ record: consuming Record) {
    if idsByHash == nil, count == Self.largestScannedCount {
      idsByHash = Dictionary(grouping: records) { $0.context.valuesHash }
        .mapValues { Set($0.map { $0.id }) }
    }
    if idsByHash != nil { idsByHash?[record.context.valuesHash, default: []].insert(record.id) }
    let id = record.id
    countLeases(from: (0, 0), to: record.leases)
    table.insert(record, for: id)
  }

  /// Changes a run, but not the context that new runs are compared with. Returns `nil` without the run.
  @discardableResult
  mutating func update<Output>(
    _ id: OperationTaskID, _ change: (inout Record) -> Output
  ) -> Output? {
    let updated = table.update(id) { record in
      let old = record.leases
      return (change(&record), old, record.leases)
    }
    guard let (output, old, new) = updated else { return nil }
    countLeases(from: old, to: new)
    return output
  }

  /// Changes a run, and the context that new runs are compared with.
  mutating func updateContext(of id: OperationTaskID, _ change: (inout Record) -> Void) {
    if idsByHash != nil, let old = self[id] { removeHash(old.context.valuesHash, of: id) }
    let new = update(id) { record in (change(&record), record.context).1 }
    if let new { idsByHash?[new.valuesHash, default: []].insert(id) }
  }

  private mutating func removeHash(_ hash: Int, of id: OperationTaskID) {
    idsByHash?[hash]?.remove(id)
    if idsByHash?[hash]?.isEmpty == true { idsByHash?[hash] = nil }
  }

  mutating func remove(_ id: OperationTaskID) -> Record? {
    guard let record = table.remove(id) else { return nil }
    countLeases(from: record.leases, to: (0, 0))
    if idsByHash != nil { removeHash(record.context.valuesHash, of: id) }
    if isEmpty { idsByHash = nil }
    return record
  }

  /// Removes the run if it is not held.
  mutating func removeIfFree(_ id: OperationTaskID, observerCount: Int) -> Record? {
    update(id) { $0.isHeld(observerCount: observerCount) } == false ? remove(id) : nil
  }
}

/// The kind of a lease on a run.
enum RunLease: Sendable {
  /// The lease of a caller that awaits the result.
  case awaiter
  /// The lease of the subscribers, as long as there are any.
  case observers
  /// The lease of a handle that can start the run.
  case handle
}

/// A run that the user's predicate compares with a new one.
struct RunCandidate: Sendable {
  let id: OperationTaskID
  let context: OperationContext
}

/// The result of the user's predicate for some candidates.
struct RunVerdict: Sendable {
  let compared: Set<OperationTaskID>
  let match: OperationTaskID?
}

extension Deduplication {
  /// Returns the result of the user's predicate for the candidates.
  func verdict(on context: OperationContext, among candidates: [RunCandidate]) -> RunVerdict {
    let match = candidates.first { candidate in
      if case .by(let areSame) = self { areSame(candidate.context, context) } else { false }
    }
    return RunVerdict(compared: Set(candidates.map { $0.id }), match: match?.id)
  }
}

// In this module, and not beside `SlotList`: with these there, the benchmark fetch costs a third more.
extension SlotList {
  /// Returns the slot of the element with an identifier; `nil` if there is none.
  func slot(of id: ID) -> Int? {
    let position = Self.position(of: id, in: slots)
    guard position < slots.count, slots[position].id == id, slots[position].element != nil else {
      return nil
    }
    return position
  }

  subscript(id: ID) -> Element? { slot(of: id).flatMap { slots[$0].element } }

  /// Changes an element in place. Returns `nil` if there is none.
  @discardableResult
  mutating func update<Output>(
    _ id: ID, _ change: (inout Element) -> Output
  ) -> Output? { slot(of: id).map { change(&slots[$0].element!) } }
}
