import FoundationEssentials

/// The calls of a mutation that may overlap, and the result that is displayed if the last one is
/// cancelled.
///
/// A call is *last* if no call in flight and none that has ended was started later. Its results are
/// displayed. The results of another one are *covered*: the final one is displayed only if all calls
/// that were started later are given up.
struct CallOverlap<Value: Sendable, Failure: Error>: Sendable {
  typealias Covered = (result: Result<Value, Failure>, date: Date)

  private struct Call: Sendable, Identifiable {
    let id: OperationTaskID
    /// The number of calls that were started before it.
    let rank: Int
    /// Its last result, if that is not displayed.
    var covered: Covered?
  }

  /// The calls in flight, in the order of their starts.
  private var calls = IdentifiedArrayOf<Call>()
  private var startCount = 0
  /// The rank of the call among those that have ended which was started last.
  private var endedRank = -1
  /// The result of that call, if it is not displayed.
  private var covered: Covered?
  /// The number of results that were displayed and are never undone. A store changes the states that it can
  /// restore with each of them, so that these have the same number.
  private var confirmedCount = 0

  mutating func start(_ id: OperationTaskID) {
    calls.append(Call(id: id, rank: startCount))
    startCount += 1
  }

  /// Returns a number for a result of a call if it is displayed, as are those of calls that never overlap.
  ///
  /// - Parameter display: The number that the result had when it was displayed, if it is added again, to a state
  ///   that was restored. Only what was displayed since then hides it, and not a call that has started since.
  func display(of id: OperationTaskID, again display: Int? = nil) -> Int? {
    guard let last = calls.last, let call = calls[id: id] else { return confirmedCount }
    if let display { return display == confirmedCount ? display : nil }
    return call.id == last.id && call.rank > endedRank ? confirmedCount : nil
  }

  /// Notes the result of a call, if it is not displayed. Returns the one that it replaces.
  mutating func cover(_ result: Covered?, of id: OperationTaskID) -> Covered? {
    guard let old = calls[id: id]?.covered ?? result else { return nil }
    calls.update(id: id) { $0.covered = result }
    return old
  }

  /// Ends a call. Returns a result that will not be displayed any more.
  mutating func end(_ id: OperationTaskID) -> Covered? {
    guard let call = calls.remove(id: id) else { return nil }
    if call.rank < endedRank { return call.covered }
    endedRank = call.rank
    if call.covered == nil { confirmedCount += 1 }
    return exchange(&covered, with: call.covered)
  }

  /// Removes a call as if it had not been made. Returns a result that will not be displayed any more.
  mutating func giveUp(_ id: OperationTaskID) -> Covered? { calls.remove(id: id)?.covered }

  /// Returns the result to display, if no call in flight covers it any more.
  mutating func takeUncovered() -> Covered? {
    if let last = calls.last, last.rank > endedRank { return nil }
    return takeCovered()
  }

  /// Returns the covered result, which nothing covers any more. It is displayed now, or what was set is.
  mutating func takeCovered() -> Covered? {
    confirmedCount += 1
    return covered.take()
  }
}
