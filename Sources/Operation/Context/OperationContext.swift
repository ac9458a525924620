import FoundationEssentials
import Synchronization

/// The context of a run: a value with typed keys that a request reads, and that modifiers, clients
/// and users write.
///
/// ```swift
/// extension OperationContext {
///   var region: String {
///     get { self[RegionKey.self] }
///     set { self[RegionKey.self] = newValue }
///   }
///
///   private enum RegionKey: Key {
///     static var defaultValue: String { "eu" }
///   }
/// }
/// ```
///
/// Copies share their storage until one of them is written. A context that is passed to a run
/// overrides the context of the store: a key that was not written in it has the value of the store's
/// context.
public struct OperationContext: Sendable {
  /// A key of the context, and its default value.
  public protocol Key {
    /// The type of the values under this key.
    associatedtype Value: Sendable
    /// The value of contexts in which this key was not written.
    static var defaultValue: Value { get }
  }

  private var values: ContextValues?
  /// What modifiers and defaults set for the runs of the request.
  var settings = RunSettings()
  /// What belongs to the run of this context; `nil` outside of a run.
  var run: (any ContextRun)?

  /// Creates a context in which every key has its default value.
  public init() {}

  /// The value under a key.
  public subscript<K: Key>(key: K.Type) -> K.Value {
    get { value(of: key) ?? K.defaultValue }
    set { values = ContextValues.setting(ObjectIdentifier(key), to: Written(newValue), in: values) }
  }

  /// Returns the value under a key, if it was written.
  func value<K: Key>(of key: K.Type) -> K.Value? {
    // In two steps: a cast of `nil` to an optional value would make it a written one.
    guard let found = values?.find(ObjectIdentifier(key)) else { return nil }
    return found.written.value as? K.Value
  }

  /// The number of keys that were written.
  var writtenKeyCount: Int { sequence(first: values) { $0?.next }.prefix { $0 != nil }.count }

  /// Returns `base` with the values of this context in it.
  ///
  /// The settings and the client remain those of `base`: the settings of another context are those of
  /// another request.
  func over(_ base: consuming OperationContext) -> OperationContext {
    base.values = ContextValues.merging(values, over: base.values)
    return base
  }

  /// Returns this context without its run, for a store that begins with it.
  func leavingRun() -> OperationContext {
    var context = self
    context.run = nil
    return context
  }

  /// Returns this context with the value of another one that belongs to the store.
  func inStore(of other: OperationContext) -> OperationContext {
    let isBound = { (node: ContextValues) in node.written.value is any StoreBound }
    let nodes = other.values.map { sequence(first: $0, next: \.next) }
    guard let bound = nodes?.first(where: isBound) else { return self }
    var context = self
    context.values = ContextValues.setting(bound.key, to: bound.written, in: values)
    return context
  }

  /// Returns whether both are copies of one context.
  func isIdentical(to other: OperationContext) -> Bool {
    values === other.values && run === other.run && settings.isIdentical(to: other.settings)
  }

  /// A hash of the values: contexts with equal values under the same keys have the same one. It is
  /// computed once for all copies.
  var valuesHash: Int { values?.hash ?? 0 }

  /// Returns whether each key has equal values in both.
  func hasEquivalentValues(to other: OperationContext) -> Bool {
    if values === other.values { return true }
    guard let values, let others = other.values else { return false }
    return values.isCovered(by: others) && others.isCovered(by: values)
  }
}

extension OperationContext: CustomStringConvertible, CustomDebugStringConvertible {
  /// The number of keys that were written.
  public var description: String { describe(as: "OperationContext", "keys: \(writtenKeyCount)") }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

/// What belongs to one run, of a type that only the folder `Runs` knows.
protocol ContextRun: AnyObject, Sendable {}

extension OperationContext {
  /// The clock of every date and every wait of a run; a ``SystemClock`` unless written.
  public var operationClock: any OperationClock {
    get { values?.clock?.clock ?? SystemClock() }
    set { self[ClockKey.self] = ContextClock(newValue) }
  }

  /// The executor of the tasks that use the clock; `nil` for that of the process.
  var executor: (any TaskExecutor)? { values?.clock?.executor }

  /// The time of the clock.
  func now() -> Date {
    guard let clock = values?.clock, !clock.isSystem else { return Date() }
    return clock.clock.now()
  }

  /// The same context, with a clock that stands still from now on.
  var dated: OperationContext {
    var context = self
    context.operationClock = DatedClock(date: now())
    return context
  }

  private enum ClockKey: Key {
    static var defaultValue: ContextClock { ContextClock(SystemClock()) }
  }
}

/// The clock of a context.
private final class ContextClock: Sendable, Equatable {
  let clock: any OperationClock
  let isSystem: Bool
  let executor: (any TaskExecutor)?

  init(_ clock: any OperationClock) {
    self.clock = clock
    isSystem = clock is SystemClock
    executor = isSystem ? nil : clock.executor
  }

  static func == (lhs: ContextClock, rhs: ContextClock) -> Bool {
    lhs.isSystem && rhs.isSystem || areSame(lhs.clock, rhs.clock)
  }
}

/// A value that belongs to the store: one in a context that is passed to a run does not override it.
protocol StoreBound {}

/// A value that was written at one time; its identity remains when lists are merged.
private final class Written: Sendable {
  let value: any Sendable

  init(_ value: any Sendable) { self.value = value }
}

/// A list of written values, the newest first, each key once. Contexts share its tail.
private final class ContextValues: Sendable {
  let key: ObjectIdentifier
  let written: Written
  let next: ContextValues?
  /// The clock in this list, which every change of a state reads.
  let clock: ContextClock?
  /// The hash, once it was computed; zero before.
  private let computedHash = Atomic(0)

  init(key: ObjectIdentifier, written: Written, next: ContextValues?) {
    self.key = key
    self.written = written
    self.next = next
    clock = written.value as? ContextClock ?? next?.clock
  }

  func find(_ key: ObjectIdentifier) -> ContextValues? {
    var node = Optional(self)
    while let current = node {
      if current.key == key { return current }
      node = current.next
    }
    return nil
  }

  static func setting(
    _ key: ObjectIdentifier, to written: Written, in list: ContextValues?
  ) -> ContextValues { ContextValues(key: key, written: written, next: removing(key, from: list)) }

  private static func removing(
    _ key: ObjectIdentifier, from list: ContextValues?
  ) -> ContextValues? {
    guard let list, let old = list.find(key) else { return list }
    if list === old { return list.next }
    return ContextValues(key: list.key, written: list.written, next: removing(key, from: list.next))
  }

  static func merging(_ top: ContextValues?, over base: ContextValues?) -> ContextValues? {
    guard let top else { return base }
    if top === base { return base }
    let merged = merging(top.next, over: base)
    if let present = merged?.find(top.key),
      present.written === top.written || top.written.value is any StoreBound
    {
      return merged
    }
    return setting(top.key, to: top.written, in: merged)
  }

  /// A hash that does not depend on the order. Values that are `Equatable` and not `Hashable`
  /// have no part in it.
  var hash: Int {
    let present = computedHash.load(ordering: .relaxed)
    if present != 0 { return present }
    var hasher = Hasher()
    hasher.combine(key)
    // A value with `==` and without a hash may be equal to others, and so has no part in it. One without `==` is
    // the same as another only if it is the same object, or was written once.
    if let value = written.value as? any Hashable {
      hasher.combine(AnyHashable(value))
    } else if !(written.value is any Equatable) {
      hasher.combine(identity(of: written.value, in: written))
    }
    let hash = (next?.hash ?? 1) ^ hasher.finalize()
    computedHash.store(hash, ordering: .relaxed)
    return hash
  }

  /// Returns whether `other` has an equal value for every key of this list.
  func isCovered(by other: ContextValues) -> Bool {
    sequence(first: self, next: \.next).allSatisfy { node in
      guard let match = other.find(node.key)?.written else { return false }
      return match === node.written || areSame(match.value, node.written.value)
    }
  }
}
