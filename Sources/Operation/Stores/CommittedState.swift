/// The confirmed state of a store, what its runs have yielded, and what changes have replaced.
///
/// This is the only code that changes a state, so that nothing that a change replaces is released
/// under the lock: deinitialisers of values and failures are the user's code.
struct CommittedState<State: OperationState>: Sendable {
  private(set) var state: State
  private(set) var yields = YieldedResults<State>()
  /// The number of final results, writes and resets.
  private(set) var resultCount = 0
  /// The number of yields, and of times that those of a run were undone.
  private(set) var yieldCount = 0
  /// The number of times that the yields of a run were undone.
  private(set) var undoneYieldCount = 0
  private var replaced = ReplacedValues<State>()

  init(_ state: State) { self.state = state }

  /// Changes the state.
  mutating func change<Output>(_ body: (inout State) -> Output) -> Output {
    replaced.change(&state, body)
  }

  /// Changes the state, and each state that a cancelled run would restore.
  mutating func changeAll(_ body: (inout State) -> Void) {
    change(body)
    yields.change(&replaced, body)
  }

  /// Changes each state that a cancelled run would restore.
  mutating func changeYields(_ body: (inout State) -> Void) { yields.change(&replaced, body) }

  /// Notes that a final result came, which no cancelled run undoes.
  mutating func noteResult() { resultCount += 1 }

  /// Keeps a value until the lock is released.
  mutating func release(_ value: some Sendable) { replaced.append(value) }

  /// Moves what was replaced into `values`, which is empty, to be released without the lock.
  mutating func moveReplaced(into values: inout ReplacedValues<State>) {
    if !replaced.isEmpty { swap(&replaced, &values) }
  }
}

extension CommittedState {
  /// Stores what a cancellation of a run restores, before the first of its yields.
  mutating func beginYield(_ entry: YieldedResults<State>.Entry) {
    yields.begin(entry, &replaced)
    yieldCount += 1
  }

  /// Undoes what a run yielded. Returns what the state was restored to, if the state changed.
  mutating func undoYield(of id: OperationTaskID) -> YieldedResults<State>.Entry? {
    guard let entry = yields.undo(id, &replaced) else { return nil }
    replaced.append(state)
    state = entry.before
    undoneYieldCount += 1
    yieldCount += 1
    return entry
  }

  /// A final value came: what runs have yielded is not undone any more.
  mutating func confirmYields() { yields.confirmAll(&replaced) }

  /// A run failed, and what it and earlier ones yielded is not undone any more. What others yielded
  /// later can be undone, and then the failure is in the state. The run of a page, also if it has
  /// fetched the page, confirms only what itself has yielded.
  mutating func confirmYields(upTo id: OperationTaskID, _ body: (inout State) -> Void) {
    yields.confirm(upTo: id, &replaced)
    yields.change(&replaced, body)
  }
}

/// The results that runs in flight have yielded since the last final result.
///
/// - *empty*: the state is that of the last final result.
/// - Otherwise there is one entry for each run that yielded, in the order of their last yields. Each
///   stores the state before it, which a cancellation of the run restores. Two runs of pages are for
///   pages side by side, and neither is undone with the other.
struct YieldedResults<State: OperationState>: Sendable {
  struct Entry: Sendable {
    let id: OperationTaskID
    /// The state without optimistic edits before the run yielded.
    var before: State
    /// The optimistic edits that are part of `before`.
    var idsInBase: Set<OperationTaskID>
    /// Whether the last yield of the run hides what earlier entries display.
    let hidesEarlier: Bool
    /// Adds the last yield of the run to a state.
    let redo: @Sendable (inout State) -> Void
  }

  private(set) var entries: [Entry] = []

  var isEmpty: Bool { entries.isEmpty }

  /// Appends an entry for a run that yields. It replaces one that the run has.
  mutating func begin(_ entry: Entry, _ replaced: inout ReplacedValues<State>) {
    var entry = entry
    if let old = undo(entry.id, &replaced) {
      (entry.before, entry.idsInBase) = (old.before, old.idsInBase)
    }
    entries.append(entry)
  }

  /// Removes the entry of a run. The next entry restores from now on what it would have restored.
  ///
  /// - Returns: The entry with the state to restore: the one before the run's first yield, with what other
  ///   runs have yielded since. `nil` if later yields hide what the run has yielded.
  mutating func undo(_ id: OperationTaskID, _ replaced: inout ReplacedValues<State>) -> Entry? {
    guard let index = entries.firstIndex(where: { $0.id == id }) else { return nil }
    var removed = entries.remove(at: index)
    // Its closure has what the run yielded.
    replaced.append(removed)
    for later in index..<entries.count {
      replaced.append(entries[later].before)
      (entries[later].before, entries[later].idsInBase) = (removed.before, removed.idsInBase)
      if entries[later].hidesEarlier { return nil }
      replaced.change(&removed.before, entries[later].redo)
    }
    return removed
  }

  mutating func confirmAll(_ replaced: inout ReplacedValues<State>) {
    if entries.isEmpty { return }
    replaced.append(entries)
    entries = []
  }

  mutating func confirm(upTo id: OperationTaskID, _ replaced: inout ReplacedValues<State>) {
    guard let index = entries.firstIndex(where: { $0.id == id }) else { return }
    let (own, others) = (entries[index], State.kind == .pages ? entries[..<index] : [])
    replaced.append(Array(entries[...index]))
    entries.replaceSubrange(...index, with: others)
    for other in others.indices { replaced.change(&entries[other].before, own.redo) }
  }

  /// Changes each state that a cancellation would restore.
  mutating func change(_ replaced: inout ReplacedValues<State>, _ body: (inout State) -> Void) {
    for index in entries.indices { replaced.change(&entries[index].before, body) }
  }
}

/// The values that changes of states have replaced, until they are released without the lock.
struct ReplacedValues<State: OperationState>: Sendable {
  private var value: State.StateValue?
  private var error: State.Failure?
  private var others: [any Sendable] = []

  var isEmpty: Bool { value == nil && error == nil && others.isEmpty }

  /// Changes a state, and keeps the value and the failure that it had.
  ///
  /// Pages are changed in place, which another reference would prevent. Their state lists itself what
  /// it replaced.
  mutating func change<Output>(_ state: inout State, _ body: (inout State) -> Output) -> Output {
    if State.kind != .pages {
      if value == nil { value = state.currentValue } else { append(state.currentValue) }
    }
    if let present = state.error { if error == nil { error = present } else { append(present) } }
    let output = body(&state)
    let released = state.takeReleased()
    if !released.isEmpty { others += released }
    return output
  }

  mutating func append(_ value: some Sendable) { others.append(value) }
}
