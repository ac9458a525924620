/// The part of a machine that knows which runs are under way and who holds them.
///
/// A run is *held* while somebody waits for it, while there are observers and they hold it, or,
/// before it is started, while somebody has a handle on it. When nobody holds it any more it
/// leaves the table, and its epoch is over: what it says later counts for nothing.
struct RunTable<Value: Sendable, Failure: Error, Payload: Sendable>: Sendable {
  struct Record: Sendable {
    let core: TaskCore<Value, Failure>
    var context: OperationContext
    /// How many callers wait for the run.
    var awaiters = 0
    /// How many handles could still start the run.
    var handles = 0
    var isHeldByObservers = false
    var isStarted = false
    var payload: Payload
  }

  enum Admission: Sendable {
    case new
    case join(TaskCore<Value, Failure>)
    /// A predicate of the user decides, without the lock; ask again with what it said.
    case ask([Candidate])
  }

  struct Candidate: Sendable {
    let id: OperationTaskID
    let context: OperationContext
  }

  /// What a predicate said of the runs that it was asked about.
  struct Verdict: Sendable {
    let asked: Set<OperationTaskID>
    let match: OperationTaskID?
  }

  private(set) var records: [OperationTaskID: Record] = [:]

  var isEmpty: Bool { records.isEmpty }
  var count: Int { records.count }

  subscript(id: OperationTaskID) -> Record? { records[id] }

  /// Decides whether a run in `context` is one of those that are under way.
  func admit(
    _ context: OperationContext, rule: Deduplication, verdict: Verdict?
  ) -> Admission {
    if records.isEmpty { return .new }
    switch rule {
    case .never:
      return .new
    case .equivalentContexts:
      let matches = records.values.filter { $0.context.isEquivalent(to: context) }
      return matches.map(\.core).min { $0.id < $1.id }.map(Admission.join) ?? .new
    case .by:
      let candidates = candidates(for: context)
      if candidates.isEmpty { return .new }
      guard let verdict, candidates.allSatisfy({ verdict.asked.contains($0.id) }) else {
        return .ask(candidates)
      }
      guard let match = verdict.match else { return .new }
      return records[match].map { .join($0.core) } ?? .ask(candidates)
    }
  }

  /// The runs that a predicate is asked about: those for the same pages, as contexts do not tell
  /// a user which pages a run is for.
  private func candidates(for context: OperationContext) -> [Candidate] {
    records.values.filter { $0.context.pageRunKind == context.pageRunKind }
      .map { Candidate(id: $0.core.id, context: $0.context) }.sorted { $0.id < $1.id }
  }

  mutating func insert(_ record: Record) {
    records[record.core.id] = record
  }

  mutating func update(_ id: OperationTaskID, _ change: (inout Record) -> Void) {
    guard let index = records.index(forKey: id) else { return }
    change(&records.values[index])
  }

  mutating func remove(_ id: OperationTaskID) -> Record? {
    records.removeValue(forKey: id)
  }

  /// Takes the run out if nobody holds it.
  mutating func removeIfFree(_ id: OperationTaskID, observerCount: Int) -> Record? {
    guard let record = records[id] else { return nil }
    let isHeld =
      record.awaiters > 0 || (record.isHeldByObservers && observerCount > 0)
      || (!record.isStarted && record.handles > 0)
    return isHeld ? nil : remove(id)
  }
}

extension Deduplication {
  /// What a predicate says of the candidates.
  func verdict<Value, Failure, Payload>(
    on context: OperationContext,
    among candidates: [RunTable<Value, Failure, Payload>.Candidate]
  ) -> RunTable<Value, Failure, Payload>.Verdict {
    guard case .by(let areSame) = self else {
      return RunTable.Verdict(asked: Set(candidates.map(\.id)), match: nil)
    }
    let match = candidates.first { areSame($0.context, context) }
    return RunTable.Verdict(asked: Set(candidates.map(\.id)), match: match?.id)
  }
}
