/// The optimistic edits of a store, and how its state displays a value.
///
/// - *plain*: there are no edits; the confirmed state is displayed.
/// - *edited*: there are layers, and the displayed value is theirs.
struct OptimisticView<State: OperationState>: Sendable {
  typealias Layers = OptimisticLayers<State.StateValue>
  /// Makes a state display a value, and adds a number to its count of updates.
  typealias Show = @Sendable (inout State, State.StateValue, Int) -> Void

  struct Edited: Sendable {
    var layers: Layers
    fileprivate let show: Show
  }

  /// The layers, to be changed in place; `nil` without edits.
  @Indirect var edited: Edited?
  /// The number of edits that were settled in this store.
  private(set) var settlementCount = 0
  /// Whether a transition has left the state without the settled edits.
  private var lacksEdits = false
  /// The number of transitions: an edit that was computed without the lock is valid if there was none
  /// since.
  private(set) var transitionCount = 0

  var isPlain: Bool { _edited.isNil }
  var layers: Layers? { edited?.layers }
  /// Whether an edit is displayed whose work is in flight.
  var isOptimistic: Bool { isPlain ? false : edited.map { $0.layers.pendingCount > 0 } ?? false }
  var needsComputation: Bool { isPlain ? false : edited?.layers.needsComputation ?? false }

  /// Returns a confirmed state with the displayed value.
  ///
  /// - Parameter settled: The number of settled edits that the confirmed state lacks.
  func displaying(_ confirmed: State, settled: Int = 0) -> State {
    guard !isPlain, let edited else { return confirmed }
    var displayed = confirmed
    let layers = edited.layers
    edited.show(&displayed, layers.displayed, settled + layers.displayedCount)
    if layers.displayedCount > 0 {
      displayed.setValueStamp(
        layers.displayedStamp, isUnconfirmed: settled == 0 && !confirmed.hasOwnValue)
    }
    return displayed
  }

  /// Returns a confirmed state with the base value.
  func withBaseValue(_ confirmed: State) -> State {
    guard let edited else { return confirmed }
    var base = confirmed
    edited.show(&base, edited.layers.base, 0)
    return base
  }

  /// Makes a state display a value, if there are layers. With a stamp, it counts as another value.
  func show(
    _ value: State.StateValue, updates: Int, as stamp: ValueStamp?, in state: inout State
  ) {
    edited?.show(&state, value, updates)
    if let stamp { state.setValueStamp(stamp) }
  }

  /// Appends an edit to the layers. The values have to be computed, unless it is the first one and
  /// its value was.
  mutating func append(
    _ id: OperationTaskID, _ edit: @escaping Layers.Edit, over value: State.StateValue,
    displaying displayed: State.StateValue? = nil, show: @escaping Show
  ) {
    var new = edited.take() ?? Edited(layers: Layers(base: value), show: show)
    new.layers.append(id, edit, displaying: displayed)
    edited = new
  }

  /// Settles an edit whose work has succeeded, unless a reset has removed it.
  mutating func settle(_ id: OperationTaskID) {
    let settlement = settlementCount + 1
    guard edited?.layers.settle(id, as: settlement) == true else { return }
    settlementCount = settlement
    noteMissingEdits()
  }

  mutating func noteMissingEdits() { lacksEdits = !isPlain }

  mutating func noteTransition() { transitionCount &+= 1 }

  mutating func takeMissingEdits() -> Bool { exchange(&lacksEdits, with: false) }

  /// Removes the layers. Returns what is released without the lock.
  mutating func removeAll() -> (any Sendable)? { edited.take().map { $0 } }

  /// Settles the only pending edit, and removes the layers. Returns them, to be released without the
  /// lock.
  mutating func settleAll() -> Layers? {
    settlementCount += 1
    return edited.take()?.layers
  }
}
