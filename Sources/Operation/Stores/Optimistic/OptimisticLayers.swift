/// The machine of optimistic edits: what lies over what the server gave, in its order.
///
/// A layer is *pending* while its work is under way, and *settled* when that has succeeded. The
/// *floor* is what the server gave last. The confirmed value is the floor with the settled edits
/// that the floor does not have yet; the shown value has the pending edits, too, all in the order in
/// which they were made. A settled layer is kept as long as a result may come that does not have its
/// edit, or an earlier layer is pending; then it becomes part of the floor. While a part of a value is
/// on its way, which will stand beside what the floor has, that comes earlier.
///
/// Edits are the user's, so the machine only plans what is to be computed, and takes in what was.
struct OptimisticLayers<Value: Sendable>: Sendable {
  typealias Edit = @Sendable (inout Value) -> Void

  enum Phase: Sendable {
    case pending
    /// Its work succeeded as the given one of all of the store.
    case settled(Int, isInFloor: Bool)
    /// The same, and a rendering is to make it part of the floor.
    case entering(Int)
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

  var layers: [Layer] = []
  /// What the server gave, with the edits that have become part of it.
  var floor: Value
  /// What is shown.
  var shown: Value
  /// Goes up with every change that makes the values be computed anew.
  var version = 0
  var renderedVersion = 0
  /// Whether the values are what the edits have made of the floor, and were not left as they were.
  var isRendered = true
  /// How many pending edits are shown.
  var shownCount = 0
  /// How many edits have been confirmed since the values were computed.
  var newlySettled = 0

  init(floor: Value) {
    self.floor = floor
    shown = floor
  }

  /// One pending edit, and what it makes of the floor.
  init(floor: Value, shown: Value, _ id: OperationTaskID, _ edit: @escaping Edit) {
    self.floor = floor
    self.shown = shown
    layers = [Layer(id: id, edit: edit)]
    shownCount = 1
  }

  var needsRendering: Bool { version != renderedVersion }
  var isEmpty: Bool { layers.isEmpty }
  var pendingCount: Int { layers.count { $0.isPending } }

  /// The settled edits that the floor has.
  var idsInFloor: Set<OperationTaskID> {
    Set(
      layers.compactMap {
        if case .settled(_, isInFloor: true) = $0.phase { $0.id } else { nil }
      })
  }

  /// Whether what is shown is what will be confirmed when the work of a layer has succeeded: no other
  /// is pending.
  func isShownConfirmed(by id: OperationTaskID) -> Bool {
    isRendered && !needsRendering && shownCount == 1
      && layers.contains { $0.id == id && $0.isPending }
  }

  /// Whether all settled edits were settled when `settlements` were.
  func areSettled(since settlements: Int) -> Bool {
    !layers.contains { $0.isSettled(after: settlements) }
  }

  mutating func append(_ id: OperationTaskID, _ edit: @escaping Edit) {
    layers.append(Layer(id: id, edit: edit))
    version += 1
  }

  /// The work of a layer succeeded, as the given one of all of the store.
  mutating func settle(_ id: OperationTaskID, as settlement: Int) {
    guard let index = layers.firstIndex(where: { $0.id == id }) else { return }
    layers[index].phase = .settled(settlement, isInFloor: false)
    newlySettled += 1
    version += 1
  }

  /// The work of a layer failed; gives what is to be released.
  mutating func remove(_ id: OperationTaskID) -> (any Sendable)? {
    guard let index = layers.firstIndex(where: { $0.id == id }) else { return nil }
    version += 1
    return layers.remove(at: index)
  }

  /// A value came from the server, by a run that began when `settlements` edits had been settled;
  /// it has those, and no other. A part of a value says nothing about that.
  mutating func land(_ value: Value, after settlements: Int, isWhole: Bool) {
    floor = value
    version += 1
    guard isWhole else { return }
    for index in layers.indices {
      guard case .settled(let settlement, _) = layers[index].phase else { continue }
      layers[index].phase = .settled(settlement, isInFloor: settlement <= settlements)
    }
  }

  /// The floor goes back to what it was when it had some of the edits.
  mutating func restore(_ value: Value, idsInFloor: Set<OperationTaskID>) {
    floor = value
    version += 1
    for index in layers.indices {
      guard case .settled(let settlement, _) = layers[index].phase else { continue }
      layers[index].phase = .settled(
        settlement, isInFloor: idsInFloor.contains(layers[index].id))
    }
  }

  /// A run has ended, so that settled layers may have to be kept no longer.
  mutating func runEnded() {
    if layers.contains(where: { !$0.isPending }) { version += 1 }
  }
}

extension OptimisticLayers {
  /// What is to be computed, without the lock; then what was computed; and after it was taken in, what
  /// that has replaced.
  struct Rendering: Sendable {
    let version: Int
    let layers: [Layer]
    /// How many edits had been settled when the oldest run began that is under way and may still
    /// give a value; -1 keeps all layers.
    let oldest: Int
    var floor: Value
    var confirmed: Value
    var shown: Value

    init(version: Int, layers: [Layer], oldest: Int, floor: Value) {
      self.version = version
      self.layers = layers
      self.oldest = oldest
      self.floor = floor
      confirmed = floor
      shown = floor
    }
  }

  /// What becomes of a layer in a rendering.
  enum Role: Sendable {
    /// Its edit becomes part of the floor, in which it is not yet.
    case folded
    /// The same, but a result may come that does not have it, or nothing of it may stay.
    case placed
    /// The floor has its edit, and nobody will ask for it again.
    case forgotten
    /// The floor has its edit, but a result may come that does not.
    case inFloor
    case confirmed
    case pending

    var isKept: Bool {
      switch self {
      case .folded, .forgotten: false
      case .placed, .inFloor, .confirmed, .pending: true
      }
    }
  }

  /// Begins a rendering.
  ///
  /// - Parameters:
  ///   - oldest: See ``Rendering``.
  ///   - part: How many settled edits every value has that may come, where one of them may be a part
  ///     of the value. Once another edit is settled, which the part lacks, it comes to the floor as
  ///     that is, and the edits that it has must be there.
  func rendering(oldest: Int, part: Int = .max) -> Rendering {
    let layers = part < .max ? Self.entering(layers, beside: part) : layers
    return Rendering(version: version, layers: layers, oldest: oldest, floor: floor)
  }

  /// The layers, those of them to be made part of the floor that a part has which lacks others.
  static func entering(_ layers: [Layer], beside part: Int) -> [Layer] {
    guard layers.contains(where: { $0.isSettled(after: part) }) else { return layers }
    return layers.map { layer in
      guard case .settled(let settlement, isInFloor: false) = layer.phase, settlement <= part else {
        return layer
      }
      var layer = layer
      layer.phase = .entering(settlement)
      return layer
    }
  }

  /// Takes in what was computed, unless it is out of date; gives how many confirmed edits are in it
  /// for the first time.
  mutating func finish(_ rendering: inout Rendering) -> Int? {
    guard rendering.version == version else { return nil }
    swap(&floor, &rendering.floor)
    swap(&shown, &rendering.shown)
    var unchanged = 0
    rendering.forEachLayer { if $1.isKept, $1 != .placed { unchanged += 1 } }
    if unchanged < layers.count {
      layers = []
      rendering.forEachLayer { layer, role in
        guard role.isKept else { return }
        layers.append(layer)
        if case .entering(let settlement) = layer.phase {
          layers[layers.count - 1].phase = .settled(settlement, isInFloor: true)
        }
      }
    }
    shownCount = pendingCount
    renderedVersion = version
    isRendered = true
    defer { newlySettled = 0 }
    return newlySettled
  }

  /// Leaves the values as they are, because the edits themselves change the store again and again.
  mutating func giveUpRendering() {
    renderedVersion = version
    isRendered = false
  }
}

extension OptimisticLayers.Rendering {
  /// Goes through the layers from the lowest to the highest.
  func forEachLayer(
    _ body: (OptimisticLayers.Layer, OptimisticLayers.Role) -> Void
  ) {
    var isLowest = true
    for layer in layers {
      switch layer.phase {
      case .pending:
        isLowest = false
        body(layer, .pending)
      case .settled(let settlement, isInFloor: true):
        body(layer, oldest < settlement ? .inFloor : .forgotten)
      case .settled(let settlement, isInFloor: false):
        isLowest = isLowest && oldest >= settlement
        body(layer, isLowest ? .folded : .confirmed)
      case .entering(let settlement):
        isLowest = isLowest && oldest >= settlement
        body(layer, isLowest ? .folded : .placed)
      }
    }
  }

  /// Calls the edits.
  mutating func perform() {
    var values = (floor: floor, confirmed: floor, shown: floor)
    forEachLayer { if $1 == .folded || $1 == .placed { $0.edit(&values.floor) } }
    (values.confirmed, values.shown) = (values.floor, values.floor)
    let hasPending = layers.contains { $0.isPending }
    forEachLayer { layer, role in
      if role == .confirmed { layer.edit(&values.confirmed) }
      if hasPending, role == .confirmed || role == .pending { layer.edit(&values.shown) }
    }
    if !hasPending { values.shown = values.confirmed }
    (floor, confirmed, shown) = values
  }
}
