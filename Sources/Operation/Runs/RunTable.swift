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
    var payload: Payload

    var id: OperationTaskID { task.id }
    var core: TaskCore<Value, Failure> { task.core }
    var run: OperationRun { OperationRun(task: task) }
    var context: OperationContext { (compared ?? task.box).configuration.context }
  }

  enum Admission: Sendable {
    case new
    case join(TaskCore<Value, Failure>)
    /// The user's predicate has to compare the contexts without the lock. Its verdict is passed to
    /// the next call.
    case compare([Candidate])
  }

  struct Candidate: Sendable {
    let id: OperationTaskID
    let context: OperationContext
  }

  /// The result of the user's predicate for some candidates.
  struct Verdict: Sendable {
    let compared: Set<OperationTaskID>
    let match: OperationTaskID?
  }

  private var table: [OperationTaskID: Record] = [:]
  /// The number of callers that await a run.
  private var awaiterCount = 0
  /// The number of runs that the observers hold.
  private var observedCount = 0
  /// The runs by the hashes of their contexts; `nil` while there have been few of them.
  private var idsByHash: [Int: Set<OperationTaskID>]?

  /// The number of runs above which they are found by the hashes of their contexts.
  static var largestScannedCount: Int { 8 }

  var isEmpty: Bool { table.isEmpty }
  var count: Int { table.count }

  /// The runs in no order.
  var records: Dictionary<OperationTaskID, Record>.Values { table.values }

  /// The identifiers of the runs, the oldest first.
  var ids: [OperationTaskID] { table.keys.sorted() }

  subscript(id: OperationTaskID) -> Record? { table[id] }

  func contains(_ id: OperationTaskID) -> Bool { table.index(forKey: id) != nil }

  /// The number of leases on the runs.
  func leaseCount(observerCount: Int) -> Int { awaiterCount + observedCount * observerCount }

  /// Decides whether a run in `context` joins one of the runs in flight.
  ///
  /// Only contexts with the same hash are compared. The hash calls the user's code, so callers compute
  /// it before they lock.
  ///
  /// - Parameter isOutdated: Returns whether a run is too old to be joined.
  func admit(
    _ context: OperationContext, rule: Deduplication, verdict: Verdict?,
    unless isOutdated: (Record) -> Bool = { _ in false }
  ) -> Admission {
    if table.isEmpty { return .new }
    switch rule {
    case .never: return .new
    case .equivalentContexts:
      return equivalentRecord(to: context, unless: isOutdated).map { .join($0.core) } ?? .new
    case .by:
      let candidates = candidates(for: context, unless: isOutdated)
      if candidates.isEmpty { return .new }
      guard let verdict, candidates.allSatisfy({ verdict.compared.contains($0.id) }) else {
        return .compare(candidates)
      }
      guard let match = verdict.match else { return .new }
      return table[match].map { .join($0.core) } ?? .compare(candidates)
    }
  }

  /// The oldest run in an equivalent context.
  private func equivalentRecord(
    to context: OperationContext, unless isOutdated: (Record) -> Bool
  ) -> Record? {
    let hash = context.valuesHash
    let candidates = idsByHash.map { ($0[hash] ?? []).compactMap { table[$0] } }
    let equivalent = (candidates ?? Array(records)).filter {
      $0.context.valuesHash == hash && !isOutdated($0) && $0.context.isEquivalent(to: context)
    }
    return equivalent.min { $0.id < $1.id }
  }

  /// The runs for the same pages: a user's predicate cannot see in a context which pages a run is for.
  private func candidates(
    for context: OperationContext, unless isOutdated: (Record) -> Bool
  ) -> [Candidate] {
    records.filter { $0.context.pageRunKind == context.pageRunKind && !isOutdated($0) }
      .map { Candidate(id: $0.core.id, context: $0.context) }.sorted { $0.id < $1.id }
  }

  mutating func insert(_ record: Record) {
    if let old = table.updateValue(record, forKey: record.id) { noteRemoval(of: old) }
    awaiterCount += record.awaiters
    if record.isHeldByObservers { observedCount += 1 }
    if idsByHash != nil {
      idsByHash?[record.context.valuesHash, default: []].insert(record.id)
    } else if table.count > Self.largestScannedCount {
      idsByHash = Dictionary(grouping: records) { $0.context.valuesHash }.mapValues {
        Set($0.map { $0.id })
      }
    }
  }

  mutating func update(_ id: OperationTaskID, _ change: (inout Record) -> Void) {
    guard var record = remove(id) else { return }
    change(&record)
    insert(record)
  }

  mutating func remove(_ id: OperationTaskID) -> Record? {
    guard let record = table.removeValue(forKey: id) else { return nil }
    noteRemoval(of: record)
    return record
  }

  /// Subtracts the leases of a record, and removes the hash of its context.
  private mutating func noteRemoval(of record: Record) {
    awaiterCount -= record.awaiters
    if record.isHeldByObservers { observedCount -= 1 }
    if idsByHash == nil { return }
    if table.isEmpty { return idsByHash = nil }
    let hash = record.context.valuesHash
    idsByHash?[hash]?.remove(record.id)
    if idsByHash?[hash]?.isEmpty == true { idsByHash?[hash] = nil }
  }

  /// Removes the run if it is not held.
  mutating func removeIfFree(_ id: OperationTaskID, observerCount: Int) -> Record? {
    guard let record = table[id] else { return nil }
    let isHeld =
      record.awaiters > 0 || (record.isHeldByObservers && observerCount > 0)
      || (!record.isStarted && record.handles > 0)
    return isHeld ? nil : remove(id)
  }
}

extension Deduplication {
  /// Returns the result of the user's predicate for the candidates.
  func verdict<Value, Failure, Payload>(
    on context: OperationContext,
    among candidates: [RunTable<Value, Failure, Payload>.Candidate]
  ) -> RunTable<Value, Failure, Payload>.Verdict {
    guard case .by(let areSame) = self else {
      return RunTable.Verdict(compared: Set(candidates.map { $0.id }), match: nil)
    }
    let match = candidates.first { areSame($0.context, context) }
    return RunTable.Verdict(compared: Set(candidates.map { $0.id }), match: match?.id)
  }
}
