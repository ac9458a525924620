/// The machine of optimistic edits, which are displayed on top of the base value in their order.
///
/// A layer is one edit. It is *pending* while its work is in flight, and *settled* when the work has
/// succeeded. The *base* value is what the server returned last. The confirmed value is the base value
/// with the settled edits that it does not contain yet. The displayed value has the pending edits,
/// too, all in the order in which they were made. A settled layer is kept while a result may come that
/// does not contain its edit, or an earlier layer is pending. Then it becomes part of the base value.
/// While a part of a value is in flight, which will be stored beside the rest of the base value, that
/// happens earlier.
///
/// Edits are the user's code. So the machine only plans a computation, which is performed without the
/// lock, and then takes its result.
struct OptimisticLayers<Value: Sendable>: Sendable {
  typealias Edit = @Sendable (inout Value) -> Void

  enum Phase: Sendable {
    case pending
    /// Its work has succeeded; the number counts the settled edits of the store.
    case settled(Int, isInBase: Bool)
  }

  struct Layer: Sendable {
    let id: OperationTaskID
    let edit: Edit
    var phase: Phase = .pending

    var isPending: Bool { if case .pending = phase { true } else { false } }

    func isSettled(after settlements: Int) -> Bool {
      if case .settled(let settlement, _) = phase { settlement > settlements } else { false }
    }
  }

  /// What a computation has to do.
  enum Change: Sendable {
    case nothing
    /// The edit of the last layer is missing in the displayed value, and nothing else has changed.
    case appended(Edit)
    /// Edits were settled, or a run has ended: the displayed value has all edits in their order already.
    case settled
    case anything
  }

  private(set) var layers: [Layer] = []
  /// What the server returned, with the edits that have become part of it.
  private(set) var base: Value
  private(set) var displayed: Value
  private(set) var displayedStamp = ValueStamp.next()
  /// Increases with every change after which the values have to be computed.
  private var version = 0
  private var computedVersion = 0
  /// What has changed since the last computation. `.nothing` means that the displayed value has all edits:
  /// after ``giveUpComputation()`` it is `.anything`, though no computation is needed.
  private var change = Change.nothing
  /// The number of pending edits in the displayed value.
  private(set) var displayedCount = 0
  /// The number of edits that were settled since the last computation.
  private var newlySettled = 0

  init(base: Value) {
    self.base = base
    displayed = base
  }

  var needsComputation: Bool { version != computedVersion }
  var isEmpty: Bool { layers.isEmpty }
  private(set) var pendingCount = 0

  /// The settled edits that are part of the base value.
  var idsInBase: Set<OperationTaskID> {
    Set(layers.compactMap { if case .settled(_, isInBase: true) = $0.phase { $0.id } else { nil } })
  }

  /// Returns whether the displayed value is the confirmed one once a layer is settled: no other is
  /// pending.
  func isDisplayedConfirmed(by id: OperationTaskID) -> Bool {
    guard case .nothing = change, displayedCount == 1 else { return false }
    return layers.contains { $0.id == id && $0.isPending }
  }

  /// Returns whether an edit was settled after the given number of settlements.
  func hasSettled(after settlements: Int) -> Bool {
    layers.contains { $0.isSettled(after: settlements) }
  }

  /// Appends a pending edit.
  ///
  /// - Parameter value: The value to display, if it is the first edit and its value was computed.
  mutating func append(
    _ id: OperationTaskID, _ edit: @escaping Edit, displaying value: Value? = nil
  ) {
    layers.append(Layer(id: id, edit: edit))
    pendingCount += 1
    if let value { return (displayed, displayedCount) = (value, 1) }
    if case .nothing = change { change = .appended(edit) } else { change = .anything }
    version += 1
  }

  private func index(of id: OperationTaskID) -> Int? { layers.lastIndex { $0.id == id } }

  /// Notes a change that leaves the displayed value as it is.
  private mutating func noteSettled() {
    switch change {
    case .nothing, .settled: change = .settled
    case .appended, .anything: change = .anything
    }
    version += 1
  }

  private mutating func noteChange() {
    change = .anything
    version += 1
  }

  /// Settles a layer, whose work has succeeded. Returns `false` if there is no such layer.
  @discardableResult
  mutating func settle(_ id: OperationTaskID, as settlement: Int) -> Bool {
    guard let index = index(of: id) else { return false }
    if layers[index].isPending { pendingCount -= 1 }
    layers[index].phase = .settled(settlement, isInBase: false)
    newlySettled += 1
    noteSettled()
    return true
  }

  /// Removes a layer, whose work has failed. Returns what is released without the lock.
  mutating func remove(_ id: OperationTaskID) -> (any Sendable)? {
    guard let index = index(of: id) else { return nil }
    if layers[index].isPending { pendingCount -= 1 }
    noteChange()
    return layers.remove(at: index)
  }

  /// Replaces the base value by one of the server, from a run that began when `settlements` edits were
  /// settled. A whole value contains those edits, and no other.
  mutating func land(_ value: Value, after settlements: Int, isWhole: Bool) {
    base = value
    noteChange()
    if isWhole { noteBase { _, settlement in settlement <= settlements } }
  }

  /// Restores a base value, which contains the given edits.
  mutating func restore(_ value: Value, idsInBase: Set<OperationTaskID>) {
    base = value
    noteChange()
    noteBase { id, _ in idsInBase.contains(id) }
  }

  /// Notes which settled edits the base value contains.
  private mutating func noteBase(
    contains isInBase: (_ id: OperationTaskID, _ settlement: Int) -> Bool
  ) {
    for index in layers.indices {
      guard case .settled(let settlement, _) = layers[index].phase else { continue }
      layers[index].phase = .settled(settlement, isInBase: isInBase(layers[index].id, settlement))
    }
  }

  /// Notes that a run has ended, so that settled layers may not be needed any more.
  mutating func runEnded() { if pendingCount < layers.count { noteSettled() } }
}

extension OptimisticLayers {
  /// A computation of the values: first its inputs, then its results, and after ``finish(_:)`` the
  /// values that these have replaced.
  struct Computation: Sendable {
    let version: Int
    let layers: [Layer]
    /// The number of edits that were settled when the oldest run in flight began; -1 keeps all layers.
    let oldest: Int
    /// The number of settled edits that enter the base value, because a part that contains them
    /// will be added to it; -1 for none.
    let placed: Int
    let change: Change
    var base: Value
    /// `nil` if only the displayed value changes.
    var confirmed: Value?
    var displayed: Value
  }

  /// The role of a layer in a computation.
  enum Role: Sendable {
    /// Its edit becomes part of the base value.
    case folded
    /// The same, but a result may come that does not contain it.
    case placed
    /// The base value contains its edit, and every result that may come does.
    case forgotten
    /// The base value contains its edit, but a result may come that does not.
    case inBase
    case confirmed
    case pending

    /// Whether the layer stays as it is.
    var isUnchanged: Bool { self == .inBase || self == .confirmed || self == .pending }
  }

  /// Returns a computation to perform.
  ///
  /// - Parameters:
  ///   - oldest: See ``Computation``.
  ///   - placed: See ``Computation``. A part that lacks a later edit is added to the base value as it is, so the
  ///     edits that it contains must be part of the base value.
  func computation(oldest: Int, placed: Int = -1) -> Computation {
    if case .appended = change {
      return Computation(
        version: version, layers: [], oldest: oldest, placed: -1, change: change, base: base,
        displayed: displayed)
    }
    // What enters the base value changes the order of the edits.
    return Computation(
      version: version, layers: layers, oldest: oldest, placed: placed,
      change: placed >= 0 ? .anything : change, base: base, displayed: displayed)
  }

  /// Takes the results of a computation, unless there was a change since. Returns the number of settled
  /// edits that are in the values for the first time.
  mutating func finish(_ computation: inout Computation) -> Int? {
    guard computation.version == version else { return nil }
    swap(&displayed, &computation.displayed)
    if case .settled = computation.change {} else { displayedStamp = .next() }
    displayedCount = pendingCount
    computedVersion = version
    change = .nothing
    if computation.confirmed == nil { return 0 }
    swap(&base, &computation.base)
    var unchangedCount = 0
    computation.forEachLayer { if $1.isUnchanged { unchangedCount += 1 } }
    if unchangedCount < layers.count {
      layers = []
      computation.forEachLayer { layer, role in
        if role == .folded || role == .forgotten { return }
        layers.append(layer)
        if role == .placed, case .settled(let settlement, _) = layer.phase {
          layers[layers.count - 1].phase = .settled(settlement, isInBase: true)
        }
      }
    }
    return exchange(&newlySettled, with: 0)
  }

  /// Leaves the values as they are, because the edits themselves change the store again and again.
  mutating func giveUpComputation() {
    computedVersion = version
    change = .anything
  }
}

extension OptimisticLayers.Computation {
  /// Calls `body` with each layer, the oldest first.
  func forEachLayer(_ body: (OptimisticLayers.Layer, OptimisticLayers.Role) -> Void) {
    var isLowest = true
    for layer in layers {
      switch layer.phase {
      case .pending:
        isLowest = false
        body(layer, .pending)
      case .settled(let settlement, isInBase: true):
        body(layer, oldest < settlement ? .inBase : .forgotten)
      case .settled(let settlement, isInBase: false):
        isLowest = isLowest && oldest >= settlement
        body(layer, isLowest ? .folded : settlement <= placed ? .placed : .confirmed)
      }
    }
  }

  /// Calls the edits.
  mutating func perform() {
    if case .appended(let edit) = change { return edit(&displayed) }
    let isDisplayed = if case .settled = change { true } else { false }
    var values = (base: base, confirmed: base, displayed: base)
    forEachLayer { if $1 == .folded || $1 == .placed { $0.edit(&values.base) } }
    (values.confirmed, values.displayed) = (values.base, isDisplayed ? displayed : values.base)
    let hasPending = layers.contains { $0.isPending }
    forEachLayer { layer, role in
      if role == .confirmed { layer.edit(&values.confirmed) }
      if hasPending, !isDisplayed, role == .confirmed || role == .pending {
        layer.edit(&values.displayed)
      }
    }
    if !hasPending { values.displayed = values.confirmed }
    (base, confirmed, displayed) = values
  }
}
