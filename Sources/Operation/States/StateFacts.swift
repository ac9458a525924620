import FoundationEssentials
import Synchronization

/// What the states of queries, pages and mutations have in common: the value, the last error, and how
/// often and when both were set.
struct StateFacts<Value: Sendable, Failure: Error>: Sendable {
  var value: Value
  var valueDate: Date?
  var valueCount = 0
  /// See ``ValueStamp``.
  var stamp = ValueStamp.initial
  @Indirect private var extras: Extras? = nil

  /// What most states do not have. It is on the heap, because a state is copied for each notification. With
  /// these fields in the state itself, the benchmarks write per subscriber and subscribe and cancel are over
  /// their limits.
  private struct Extras: Sendable {
    var initial: Value?
    var error: Failure?
    var errorDate: Date?
    var errorCount = 0
    var errorStamp = ValueStamp.initial
    var isRestoring = false
    var isUnconfirmed = false
  }

  /// Creates the facts of a state that begins with a value.
  ///
  /// - Parameter isEmpty: Whether the value is the one that a reset state has anyway.
  init(_ value: Value, isEmpty: Bool) {
    self.value = value
    if !isEmpty { extras = Extras(initial: value) }
  }

  /// The value that the state began with; `nil` if that was an empty one.
  var initial: Value? {
    get { _extras.map { $0.initial } ?? nil }
    set { change { $0.initial = newValue } }
  }
  var error: Failure? { _extras.map { $0.error } ?? nil }
  var errorDate: Date? { _extras.map { $0.errorDate } ?? nil }
  var errorCount: Int { _extras.map { $0.errorCount } ?? 0 }
  var errorStamp: ValueStamp { _extras.map { $0.errorStamp } ?? .initial }
  /// Whether a saved value is being loaded.
  var isRestoring: Bool {
    get { _extras.map { $0.isRestoring } ?? false }
    set { if newValue != isRestoring { change { $0.isRestoring = newValue } } }
  }

  /// Whether the value is only that of optimistic edits whose work is in flight.
  var isUnconfirmed: Bool {
    get { _extras.map { $0.isUnconfirmed } ?? false }
    set { if newValue != isUnconfirmed { change { $0.isUnconfirmed = newValue } } }
  }

  /// Whether the value is to be saved: it was fetched or set, or the initial one was edited. A value that edits
  /// alone have made has no date with which it could come back.
  var isSaved: Bool { valueCount > 0 && (valueDate != nil || initial != nil) }

  private mutating func change(_ body: (inout Extras) -> Void) {
    if _extras.isNil { extras = Extras() }
    body(&extras!)
  }

  /// Takes in a saved value, which is older than anything else.
  mutating func restore(_ value: Value, from date: Date) {
    self.value = value
    valueCount += 1
    stamp = .next()
    valueDate = date
  }

  /// Takes in that `value` has been changed.
  mutating func succeed(at date: Date) {
    valueCount += 1
    stamp = .next()
    valueDate = date
    if error != nil { change { $0.error = nil } }
  }

  /// Takes in a result, whose value is stored already.
  mutating func note(_ result: Result<some Any, Failure>, at date: Date) {
    guard case .failure(let failure) = result else { return succeed(at: date) }
    change {
      $0.error = failure
      $0.errorCount += 1
      $0.errorStamp = .next()
      $0.errorDate = date
    }
  }

  /// Takes in a result. A value that is `nil` has no date.
  mutating func take<Wrapped>(
    _ result: Result<Wrapped?, Failure>, at date: Date
  ) where Value == Wrapped? {
    if case .success(let value) = result { self.value = value }
    note(result, at: date)
    if case .success(nil) = result { valueDate = nil }
  }

  /// Displays another value, which counts as a number of updates.
  mutating func show(_ value: Value, updates: Int) {
    self.value = value
    valueCount &+= updates
  }
}

/// Identifies a value of a state, also one that cannot be compared: each value that was fetched, set or edited
/// has a stamp of its own, and the initial one has ``initial``. Errors have stamps, too.
package struct ValueStamp: Sendable, Equatable {
  private static let last = Atomic<UInt64>(0)

  private let rawValue: UInt64

  static let initial = ValueStamp(rawValue: 0)

  /// Returns a stamp that no other value has.
  static func next() -> ValueStamp {
    ValueStamp(rawValue: last.wrappingAdd(1, ordering: .relaxed).newValue)
  }
}

/// A state of the library, whose values have stamps.
protocol StampedState {
  associatedtype FactValue: Sendable
  associatedtype FactFailure: Error
  var facts: StateFacts<FactValue, FactFailure> { get set }
}

extension StampedState {
  fileprivate var stamp: ValueStamp { facts.stamp }
  fileprivate var errorStamp: ValueStamp { facts.errorStamp }
  fileprivate var isConfirmed: Bool { !facts.isUnconfirmed }

  fileprivate mutating func setStamp(_ stamp: ValueStamp, isUnconfirmed: Bool) {
    (facts.stamp, facts.isUnconfirmed) = (stamp, isUnconfirmed)
  }
}

extension OperationState {
  /// The stamp of the value; `nil` in a state of another type than those of the library.
  package var valueStamp: ValueStamp? { (self as? any StampedState)?.stamp }

  /// Whether there is a value that came from a run, a write, an edit, or the creation of the state. An edit can
  /// leave the value missing, and a list of pages empty.
  package var hasOwnValue: Bool {
    if valueLastUpdatedAt != nil || hasInitialValue { return hasValue }
    let isEmpty = Self.kind == .pages && (currentValue as? any Collection)?.isEmpty == true
    return hasValue && valueUpdateCount > 0 && !isEmpty
  }

  /// Whether there is more than the value of optimistic edits whose work is in flight. A state of another type
  /// than those of the library is known to have more only if it has a date or an initial value.
  package var isConfirmed: Bool {
    (self as? any StampedState)?.isConfirmed ?? (valueLastUpdatedAt != nil || hasInitialValue)
  }

  /// Sets the stamp of a value that was replaced by another one.
  mutating func setValueStamp(_ stamp: ValueStamp, isUnconfirmed: Bool = false) {
    guard var stamped = self as? any StampedState else { return }
    stamped.setStamp(stamp, isUnconfirmed: isUnconfirmed)
    if let state = stamped as? Self { self = state }
  }

  /// Whether another state of the same store displays the same value: by stamps, or else by counts and dates.
  package func hasSameValue(as other: Self) -> Bool {
    if let stamp = valueStamp { return stamp == other.valueStamp }
    return valueUpdateCount == other.valueUpdateCount
      && valueLastUpdatedAt == other.valueLastUpdatedAt
  }

  /// Whether another state of the same store has the same error, or neither has one.
  package func hasSameError(as other: Self) -> Bool {
    guard error != nil, other.error != nil else { return error == nil && other.error == nil }
    if let state = self as? any StampedState {
      return state.errorStamp == (other as? any StampedState)?.errorStamp
    }
    return errorUpdateCount == other.errorUpdateCount
      && errorLastUpdatedAt == other.errorLastUpdatedAt
  }
}
