/// The part of a machine that holds the runs in flight and the leases on them.
///
/// A run is *held* while a caller awaits it, while there are observers and they hold it, or, before
/// its start, while a handle can start it. A run that is no longer held is removed: its epoch is over,
/// and what it yields or ends with later is dropped.
struct RunTable<Value: Sendable, Failure: Error, Payload: Sendable>: Sendable {
  struct Record: Sendable, Identifiable {
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

  /// In no order.
  private(set) var records = IdentifiedArrayOf<Record>()

  var isEmpty: Bool { records.isEmpty }
  var count: Int { records.count }

  /// The identifiers of the runs, the oldest first.
  var ids: [OperationTaskID] { records.map { $0.id }.sorted() }

  subscript(id: OperationTaskID) -> Record? { records[id: id] }

  func contains(_ id: OperationTaskID) -> Bool { records.index(id: id) != nil }

  /// Decides whether a run in `context` joins one of the runs in flight.
  ///
  /// - Parameter isOutdated: Returns whether a run is too old to be joined.
  func admit(
    _ context: OperationContext, rule: Deduplication, verdict: Verdict?,
    unless isOutdated: (Record) -> Bool = { _ in false }
  ) -> Admission {
    if records.isEmpty { return .new }
    switch rule {
    case .never: return .new
    case .equivalentContexts:
      let equivalent = records.filter {
        !isOutdated($0) && $0.context.isEquivalent(to: context)
      }
      return equivalent.min { $0.id < $1.id }.map { .join($0.core) } ?? .new
    case .by:
      let candidates = candidates(for: context, unless: isOutdated)
      if candidates.isEmpty { return .new }
      guard let verdict, candidates.allSatisfy({ verdict.compared.contains($0.id) }) else {
        return .compare(candidates)
      }
      guard let match = verdict.match else { return .new }
      return records[id: match].map { .join($0.core) } ?? .compare(candidates)
    }
  }

  /// The runs for the same pages: a user's predicate cannot see in a context which pages a run is for.
  private func candidates(
    for context: OperationContext, unless isOutdated: (Record) -> Bool
  ) -> [Candidate] {
    records.filter { $0.context.pageRunKind == context.pageRunKind && !isOutdated($0) }
      .map { Candidate(id: $0.core.id, context: $0.context) }.sorted { $0.id < $1.id }
  }

  mutating func insert(_ record: Record) { records.append(record) }

  mutating func update(_ id: OperationTaskID, _ change: (inout Record) -> Void) {
    records.update(id: id, change)
  }

  mutating func remove(_ id: OperationTaskID) -> Record? { records.removeUnordered(id: id) }

  /// Removes the run if it is not held.
  mutating func removeIfFree(_ id: OperationTaskID, observerCount: Int) -> Record? {
    guard let record = records[id: id] else { return nil }
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
