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
/// Edits are the user's code. So a copy of the machine computes the values, without the lock, and then
/// replaces the machine.
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
  /// A computation of the values on a copy of the layers, which it replaces at its end.
  struct Computation: Sendable {
    /// The computed layers; after ``finish(_:)`` those that they have replaced.
    fileprivate var layers: OptimisticLayers
    /// The number of edits that were settled when the oldest run in flight began; -1 keeps all layers.
    let oldest: Int
    /// The number of settled edits that every result contains, if a result may be a part of the value.
    let part: Int
    /// `nil` if only the displayed value changes.
    fileprivate(set) var confirmed: Value?

    /// Calls the edits.
    mutating func perform() { confirmed = layers.compute(oldest: oldest, part: part) }
  }

  /// Returns a computation to perform.
  ///
  /// - Parameters:
  ///   - oldest: See ``Computation``.
  ///   - part: See ``Computation``. Once a later edit is settled, which the part does not contain, the part
  ///     is added to the base value as it is, so the edits that it contains must be part of the base value.
  func computation(oldest: Int, part: Int = .max) -> Computation {
    Computation(layers: self, oldest: oldest, part: part)
  }

  /// Takes the results of a computation, unless there was a change since. Returns the number of settled
  /// edits that are in the values for the first time.
  mutating func finish(_ computation: inout Computation) -> Int? {
    guard computation.layers.version == version else { return nil }
    swap(&self, &computation.layers)
    return exchange(&newlySettled, with: 0)
  }

  /// Leaves the values as they are, because the edits themselves change the store again and again.
  mutating func giveUpComputation() {
    computedVersion = version
    change = .anything
  }

  /// Computes the values. Returns the confirmed one; `nil` if only the displayed value changes.
  private mutating func compute(oldest: Int, part: Int) -> Value? {
    let change = exchange(&self.change, with: .nothing)
    computedVersion = version
    displayedCount = pendingCount
    // Where a part is in flight, what enters the base value changes the order of the edits.
    let isDisplayed = if case .settled = change { part == .max } else { false }
    if !isDisplayed { displayedStamp = .next() }
    if case .appended(let edit) = change {
      edit(&displayed)
      return nil
    }
    let above = fold(oldest: oldest, placed: hasSettled(after: part) ? part : -1)
    let confirmed = above.reduce(into: base) { if !$1.isPending { $1.edit(&$0) } }
    if pendingCount == 0 {
      displayed = confirmed
    } else if !isDisplayed {
      displayed = above.reduce(into: base) { $1.edit(&$0) }
    }
    return confirmed
  }

  /// Makes edits part of the base value, and removes the layers that are not needed any more. Returns the
  /// layers whose edits are not part of the base value.
  ///
  /// - Parameter placed: The number of settled edits that enter the base value, because a part that contains
  ///   them will be added to it; -1 for none.
  private mutating func fold(oldest: Int, placed: Int) -> [Layer] {
    var kept: [Layer] = []
    var above: [Layer] = []
    var isLowest = true
    for var layer in layers {
      switch layer.phase {
      case .pending:
        isLowest = false
        above.append(layer)
      case .settled(let settlement, isInBase: true):
        // Every result that may come contains the edit, too.
        if settlement <= oldest { continue }
      case .settled(let settlement, isInBase: false):
        isLowest = isLowest && settlement <= oldest
        if isLowest || settlement <= placed {
          layer.edit(&base)
          if isLowest { continue }
          layer.phase = .settled(settlement, isInBase: true)
        } else {
          above.append(layer)
        }
      }
      kept.append(layer)
    }
    layers = kept
    return above
  }
}
