/// The part of a machine that knows which runs are under way and who holds them.
///
/// A run is *held* while somebody waits for it, while there are observers and they hold it, or,
/// before it is started, while somebody has a handle on it. When nobody holds it any more it
/// leaves the table, and its epoch is over: what it says later counts for nothing.
struct RunTable<Value: Sendable, Failure: Error, Payload: Sendable>: Sendable {
  struct Record: Sendable, Identifiable {
    /// The task of the run, and what it runs with.
    var task: OperationTask<Value, Failure>
    /// What it is told from others by, where that is not what it runs with.
    var wished: OperationTaskConfiguration.Box? = nil
    /// How many callers wait for the run.
    var awaiters = 0
    /// How many handles could still start the run.
    var handles = 0
    var isHeldByObservers = false
    var isStarted = false
    var payload: Payload

    var id: OperationTaskID { task.id }
    var core: TaskCore<Value, Failure> { task.core }
    var run: OperationRun { OperationRun(task: task) }
    var context: OperationContext { (wished ?? task.box).configuration.context }

    /// Whether others who run in a context are told the same. The context is not taken out for that,
    /// as its counts are what those who join a run at once wait for each other with.
    borrowing func isEquivalent(to other: OperationContext) -> Bool {
      if let wished { return wished.isEquivalent(to: other) }
      return task.box.isEquivalent(to: other)
    }
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

  /// In no order.
  var records = IdentifiedArrayOf<Record>()

  init() {}

  var isEmpty: Bool { records.isEmpty }
  var count: Int { records.count }

  /// Which runs there are, the oldest first.
  var ids: [OperationTaskID] { records.map { $0.id }.sorted() }

  subscript(id: OperationTaskID) -> Record? { records[id: id] }

  func contains(_ id: OperationTaskID) -> Bool { records.index(id: id) != nil }

  /// Decides whether a run in `context` is one of those that are under way.
  func admit(
    _ context: OperationContext, rule: Deduplication, verdict: Verdict?
  ) -> Admission {
    if records.isEmpty { return .new }
    switch rule {
    case .never:
      return .new
    case .equivalentContexts:
      return positionOfEquivalent(to: context).map { index in
        .join(records.read(at: index) { $0.core })
      } ?? .new
    case .by:
      let candidates = candidates(for: context)
      if candidates.isEmpty { return .new }
      guard let verdict, candidates.allSatisfy({ verdict.asked.contains($0.id) }) else {
        return .ask(candidates)
      }
      guard let match = verdict.match else { return .new }
      return records[id: match].map { .join($0.core) } ?? .ask(candidates)
    }
  }

  /// Where the oldest run in an equivalent context stands.
  func positionOfEquivalent(to context: OperationContext) -> Int? {
    var oldest: Int?
    // In their places: a record is dear to copy.
    for index in records.indices
    where records.read(at: index, { $0.isEquivalent(to: context) }) {
      let id = records.read(at: index) { $0.id }
      if let oldest, records.read(at: oldest, { $0.id < id }) { continue }
      oldest = index
    }
    return oldest
  }

  /// Lets another caller wait for the oldest run in an equivalent context, if it has been started;
  /// gives it and what it was made with.
  mutating func joinStarted(
    equivalentTo context: OperationContext
  ) -> (core: TaskCore<Value, Failure>, box: OperationTaskConfiguration.Box)? {
    guard let index = positionOfEquivalent(to: context),
      records.read(at: index, { $0.isStarted })
    else { return nil }
    records[inPlace: index].awaiters += 1
    return records.read(at: index) { ($0.core, $0.task.box) }
  }

  /// The runs that a predicate is asked about: those for the same pages, as contexts do not tell
  /// a user which pages a run is for.
  func candidates(for context: OperationContext) -> [Candidate] {
    records.filter { $0.context.pageRunKind == context.pageRunKind }
      .map { Candidate(id: $0.core.id, context: $0.context) }.sorted { $0.id < $1.id }
  }

  mutating func insert(_ record: consuming Record) {
    records.append(consume record)
  }

  mutating func update(_ id: OperationTaskID, _ change: (inout Record) -> Void) {
    records.update(id: id, change)
  }

  mutating func remove(_ id: OperationTaskID) -> Record? {
    records.removeUnordered(id: id)
  }

  /// Takes the run out if nobody holds it.
  mutating func removeIfFree(_ id: OperationTaskID, observerCount: Int) -> Record? {
    guard let record = records[id: id] else { return nil }
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
      return RunTable.Verdict(asked: Set(candidates.map { $0.id }), match: nil)
    }
    let match = candidates.first { areSame($0.context, context) }
    return RunTable.Verdict(asked: Set(candidates.map { $0.id }), match: match?.id)
  }
}
