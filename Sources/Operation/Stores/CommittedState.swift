import Synchronization

/// The confirmed state of a store, what its runs have yielded, and what changes have replaced.
///
/// This is the only code that changes a state, so that nothing that a change replaces is released
/// under the lock: deinitialisers of values and failures are the user's code.
struct CommittedState<State: OperationState>: Sendable {
  private(set) var state: State
  /// The results that runs in flight have yielded since the last final result, and one failure that stays.
  ///
  /// - *empty*: the state is that of the last final result.
  /// - Otherwise there is an entry for the last value of each run that yielded, and one for its failure since
  ///   then, in the order of the yields. Each stores the state before it, which a cancellation of the run
  ///   restores. Two runs of pages are for pages side by side, and neither is undone with the other. One
  ///   further entry may stand for a failure that is never undone: one that was set after a yield, or with which a
  ///   run of a query has ended. A ``CallState`` determines itself what is displayed: there is no
  ///   entry for a failure that is set, and none for what a later call covers.
  private(set) var yields: [YieldedResult<State>] = []
  /// The number of final results, writes and resets.
  private(set) var resultCount = 0
  /// Increases with each final result, write, reset and yield, and each time that the yields of a run are undone.
  /// No other store had or has the same number: a reader that has noted it knows what it has read.
  private(set) var changeCount = storeCount.add(1, ordering: .relaxed).newValue << 32
  /// The number of times that the yields of a run were undone.
  private(set) var undoneYieldCount = 0
  private var replaced = ReplacedValues<State>()

  init(_ state: State) { self.state = state }

  /// Changes the state.
  mutating func change<Output>(_ body: (inout State) -> Output) -> Output {
    replaced.change(&state, body)
  }

  /// Replaces the value as a whole. ``change(_:)`` does not keep pages until the lock is released, because a
  /// state changes them in place; this does.
  mutating func replaceValue(_ body: (inout State) -> Void) {
    if State.kind == .pages { release(state.currentValue) }
    change(body)
  }

  /// Changes the state, and each state that a cancelled run would restore.
  mutating func changeAll(_ body: (inout State) -> Void) {
    change(body)
    changeYields(body)
  }

  /// Changes each state that a cancelled run would restore.
  mutating func changeYields(_ body: (inout State) -> Void) {
    for index in yields.indices { replaced.change(&yields[index].before, body) }
  }

  /// Notes that a final result came, which no cancelled run undoes.
  mutating func noteResult() { (resultCount, changeCount) = (resultCount + 1, changeCount + 1) }

  /// Keeps a value until the lock is released.
  mutating func release(_ value: some Sendable) { replaced.append(value) }

  /// Moves what was replaced into `values`, which is empty, to be released without the lock.
  mutating func moveReplaced(into values: inout ReplacedValues<State>) {
    if !replaced.isEmpty { swap(&replaced, &values) }
  }
}

extension CommittedState {
  /// Stores what a cancellation of a run restores, before one of its yields. A value replaces all that the run
  /// has yielded before, and a failure the failure before.
  mutating func beginYield(_ new: YieldedResult<State>) {
    var entry = new
    if let old = removeYields(where: { $0.id == new.id && (new.isValue || !$0.isValue) }) {
      entry.adopt(old)
    }
    yields.append(entry)
    changeCount += 1
  }

  /// Undoes what a run yielded. Returns what the state was restored to, if the state changed.
  mutating func undoYield(of id: OperationTaskID) -> YieldedResult<State>? {
    guard let entry = removeYields(where: { $0.id == id }) else { return nil }
    replaced.append(exchange(&state, with: entry.before))
    undoneYieldCount += 1
    changeCount += 1
    return entry
  }

  /// Removes entries. The next entry restores from now on what they would have restored.
  ///
  /// - Returns: The entry with the state to restore: the one before the first removed yield, with what was not
  ///   removed. `nil` if nothing was removed, or if a later value hides it.
  private mutating func removeYields(
    where isRemoved: (YieldedResult<State>) -> Bool
  ) -> YieldedResult<State>? {
    guard yields.contains(where: isRemoved) else { return nil }
    // Their closures have what runs have yielded.
    replaced.append(yields)
    var restored: YieldedResult<State>?
    for var entry in exchange(&yields, with: []) {
      if isRemoved(entry) {
        restored = restored ?? entry
        continue
      }
      if var state = restored.take() {
        entry.adopt(state)
        if !entry.hidesEarlier {
          replaced.change(&state.before, entry.redo)
          restored = state
        }
      }
      // Without a yield before it, every state that can be restored has the failure.
      if entry.id != nil || !yields.isEmpty { yields.append(entry) }
    }
    return restored
  }

  /// A final value came: what runs have yielded is not undone any more.
  mutating func confirmYields() {
    if !yields.isEmpty { replaced.append(exchange(&yields, with: [])) }
  }

  /// A run has ended, and what it yielded is not undone any more. What others yielded can be undone, and then
  /// its result, and what was set before, is in the state.
  ///
  /// - Parameters:
  ///   - id: The run; `nil` if a failure is set.
  ///   - result: Adds the result, or the failure that is set, to a state.
  mutating func confirmYields(
    of id: OperationTaskID?, _ result: @escaping YieldedResult<State>.Redo
  ) {
    // What the run has yielded, and the failure that was set, become part of what earlier yields restore.
    while let index = yields.firstIndex(where: { $0.id == id || $0.id == nil }) {
      replaced.append(yields)
      let own = yields.remove(at: index)
      for earlier in 0..<index {
        replaced.change(&yields[earlier].before, own.redo)
        if own.isValue { yields[earlier].madeStaleAt = nil }
      }
      // What it hides is not displayed again.
      yields.removeFirst(own.hidesEarlier ? index : 0)
    }
    // A mutation determines itself what is displayed, and the result of a run of pages is for one side. What is
    // left is a failure, which replaces the ones that were yielded before.
    if State.self is any CallState.Type || id != nil && State.kind != .query {
      return changeYields(result)
    }
    if yields.isEmpty { return }
    yields.append(.init(id: nil, before: state, idsInBase: [], redo: result, isValue: false))
  }
}

/// What a run in flight has yielded, or a failure that is never undone.
struct YieldedResult<State: OperationState>: Sendable {
  typealias Redo = @Sendable (inout State) -> Void

  /// The run; `nil` for a failure that is never undone.
  let id: OperationTaskID?
  /// The state without optimistic edits before the result.
  var before: State
  /// The optimistic edits that are part of `before`.
  var idsInBase: Set<OperationTaskID>
  /// Adds the result to a state.
  let redo: Redo
  /// Whether the result is a value, and not a failure.
  var isValue = true
  /// The number of invalidations, if the result made a fresh value stale.
  var madeStaleAt: Int?

  /// The entry restores from now on what another one would have restored.
  mutating func adopt(_ other: Self) {
    (before, idsInBase) = (other.before, other.idsInBase)
    madeStaleAt = other.madeStaleAt ?? madeStaleAt
  }

  /// Whether the result hides what earlier entries display.
  var hidesEarlier: Bool { State.kind != .pages && isValue }
}

/// The values that changes of states have replaced, until they are released without the lock.
struct ReplacedValues<State: OperationState>: Sendable {
  private var value: State.StateValue?
  private var others: [any Sendable] = []

  var isEmpty: Bool { value == nil && others.isEmpty }

  /// Changes a state, and keeps the value and the failure that it had.
  ///
  /// Pages are changed in place, which another reference would prevent. Their state lists itself what
  /// it replaced.
  mutating func change<Output>(_ state: inout State, _ body: (inout State) -> Output) -> Output {
    if State.kind != .pages {
      if value == nil { value = state.currentValue } else { append(state.currentValue) }
    }
    if let error = state.error { append(error) }
    let output = body(&state)
    let released = state.takeReleased()
    if !released.isEmpty { others += released }
    return output
  }

  mutating func append(_ value: some Sendable) { others.append(value) }
}

/// The number of states in the process. It makes the change counts of each of them differ from all others.
private let storeCount = Atomic(0)
