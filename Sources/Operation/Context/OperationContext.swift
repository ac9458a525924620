import FoundationEssentials

/// The surroundings of a run: a value with typed keys that a request reads and that modifiers,
/// clients and users write.
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
/// Copies share their storage until one of them is written. A context that is passed to a run lies
/// over the context of the store: what it does not say, the store's says.
public struct OperationContext: Sendable {
  /// A key of the context and the value that stands where nothing was written.
  public protocol Key {
    /// The type of the values under this key.
    associatedtype Value: Sendable
    /// What a context gives where nothing was written.
    static var defaultValue: Value { get }
  }

  // Three references and nothing else, which other modules see: a copy is three counts then, and no
  // call that asks what is inside.
  var head: ContextNode?
  /// What modifiers and defaults have said about the request.
  var settings = RunSettings()
  /// What belongs to one run: often no more than which it is.
  var run: (any ContextRun)?

  /// Creates a context in which every key has its default value.
  public init() {}

  private init(head: ContextNode?, settings: RunSettings, run: any ContextRun) {
    self.head = head
    self.settings = settings
    self.run = run
  }

  /// The value under a key.
  public subscript<K: Key>(key: K.Type) -> K.Value {
    get { value(of: key) ?? K.defaultValue }
    set { head = ContextNode.setting(ObjectIdentifier(key), to: Written(newValue), in: head) }
  }

  /// The value under a key, if one was written.
  func value<K: Key>(of key: K.Type) -> K.Value? {
    // In two steps: casting a `nil` to an optional value would make it a written one.
    guard let node = head?.node(for: ObjectIdentifier(key)) else { return nil }
    return node.written.value as? K.Value
  }

  /// How many keys were written.
  var writtenKeyCount: Int {
    sequence(first: head) { $0?.next }.prefix { $0 != nil }.reduce(0) { count, _ in count + 1 }
  }

  /// What this context says, and where it says nothing, what `base` says; the settings are those
  /// of `base`, because those of a context that comes from elsewhere are about another request, and
  /// so is its client, if it has one.
  func over(_ base: consuming OperationContext) -> OperationContext {
    if let head, head !== base.head { base.head = ContextNode.merging(head, over: base.head) }
    return base
  }

  /// This context outside of the run that it was made for, for a store that begins with it.
  func leavingRun() -> OperationContext {
    var context = self
    context.run = nil
    return context
  }

  /// Whether both are copies of one.
  func isIdentical(to other: OperationContext) -> Bool {
    head === other.head && run === other.run && settings.box === other.settings.box
  }

  /// Tells whether both say the same to a request; values that cannot be compared count as
  /// different, unless they were written at once, or are one object.
  func isEquivalent(to other: OperationContext) -> Bool {
    areEquivalent(input, other.input) && ContextNode.areEquivalent(head, other.head)
  }
}

extension OperationContext {
  /// The clock that every date and every wait of a run comes from; ``SystemClock`` unless written.
  public var operationClock: any OperationClock {
    get { head?.clock?.clock ?? SystemClock() }
    set { self[ClockKey.self] = ContextClock(newValue) }
  }

  /// What the clock shows.
  func now() -> Date {
    guard let clock = head?.clock, !clock.isSystem else { return Date() }
    return clock.clock.now()
  }

  private enum ClockKey: Key {
    static var defaultValue: ContextClock { ContextClock(SystemClock()) }
  }
}

/// The clock of a context.
private final class ContextClock: Sendable, Equatable {
  let clock: any OperationClock
  let isSystem: Bool

  init(_ clock: any OperationClock) {
    self.clock = clock
    isSystem = clock is SystemClock
  }

  static func == (lhs: ContextClock, rhs: ContextClock) -> Bool {
    lhs.isSystem && rhs.isSystem || areSame(lhs.clock, rhs.clock)
  }
}

/// What belongs to one run: its node, or that and what else there is, which copies share.
protocol ContextRun: AnyObject, Sendable {
  var node: TaskNode? { get }
  var box: OperationContext.RunBox? { get }
  // Of their own, as they are asked for at each step of a run.
  var input: (any RunInput)? { get }
  var pageKind: PaginatedRunKind? { get }
  var work: RunWork? { get }
}

extension TaskNode: ContextRun {
  var node: TaskNode? { self }
  var box: OperationContext.RunBox? { nil }
  var input: (any RunInput)? { nil }
  var pageKind: PaginatedRunKind? { nil }
  var work: RunWork? { nil }
}

extension OperationContext {
  struct RunFacts: Sendable {
    let node: TaskNode?
    var attempt: Attempt
    var input: (any RunInput)?
    var hooks: RunHooks?
  }

  final class RunBox: ContextRun {
    let facts: RunFacts
    var node: TaskNode? { facts.node }
    var box: RunBox? { self }
    var input: (any RunInput)? { facts.input }
    var pageKind: PaginatedRunKind? { facts.input?.pageKind }
    var work: RunWork? { nil }

    init(_ facts: RunFacts) {
      self.facts = facts
    }
  }

  /// What belongs to a run, and what its attempts share, for which the rest is not copied.
  private final class RunAtWork: ContextRun {
    let base: any ContextRun
    let work: RunWork?
    var node: TaskNode? { base.node }
    var box: RunBox? { base.box }
    var input: (any RunInput)? { base.input }
    var pageKind: PaginatedRunKind? { base.pageKind }

    private init(_ base: any ContextRun, _ work: RunWork) {
      self.base = base
      self.work = work
    }

    static func of(_ base: any ContextRun, _ work: RunWork?) -> any ContextRun {
      work.map { RunAtWork(base, $0) } ?? base
    }
  }

  /// The run that this context belongs to; a context outside of runs has none.
  var runNode: TaskNode? { run?.node }

  private var facts: RunFacts {
    get { run?.box?.facts ?? RunFacts(node: runNode, attempt: firstAttempt) }
    set { run = RunAtWork.of(RunBox(newValue), work) }
  }

  /// Which attempt of a retried run this is.
  var attempt: Attempt {
    get { run?.box?.facts.attempt ?? firstAttempt }
    set { facts.attempt = newValue }
  }

  /// The attempt that a run begins with, as the settings say.
  private var firstAttempt: Attempt {
    if runNode == nil { return Attempt() }
    return Attempt(
      retryLimit: settings.values.retryLimit, isRetried: settings.isRetriedByStore)
  }

  /// What the run is asked to do, beyond running: a kind of page run, the arguments of a mutation.
  var input: (any RunInput)? {
    get { run?.input }
    set { facts.input = newValue }
  }

  /// What the attempts of the run share.
  var work: RunWork? {
    get { run?.work }
    set { run = RunAtWork.of(run?.box ?? run?.node ?? RunBox(facts), newValue) }
  }

  /// Who is told by the run.
  var hooks: RunHooks? {
    get { run?.box?.facts.hooks }
    set { facts.hooks = newValue }
  }
}

/// What the attempts of a run share, of a type that only its kind of request knows.
typealias RunWork = any AnyObject & Sendable

/// What a run is asked to do, of a type that only its kind of request knows.
protocol RunInput: AnyObject, Sendable {
  /// What two runs that are the same are asked for equally.
  var value: any Sendable { get }
  /// Which pages a run is for, if it is for pages: that is asked for at each of its steps.
  var pageKind: PaginatedRunKind? { get }
}

/// The arguments of a call.
final class RunArguments<Arguments: Sendable>: RunInput {
  let arguments: Arguments

  init(_ arguments: Arguments) {
    self.arguments = arguments
  }

  var value: any Sendable { arguments }
  var pageKind: PaginatedRunKind? { nil }
}

/// A kind of page run; one object for all runs of a kind.
final class PageRunInput: RunInput {
  private let kind: PaginatedRunKind

  private init(_ kind: PaginatedRunKind) {
    self.kind = kind
  }

  var value: any Sendable { kind }
  var pageKind: PaginatedRunKind? { kind }

  static func of(_ kind: PaginatedRunKind) -> PageRunInput {
    switch kind {
    case .initialPage: initialPage
    case .nextPage: nextPage
    case .previousPage: previousPage
    case .allPages: allPages
    case .refetch: refetch
    }
  }

  private static let initialPage = PageRunInput(.initialPage)
  private static let nextPage = PageRunInput(.nextPage)
  private static let previousPage = PageRunInput(.previousPage)
  private static let allPages = PageRunInput(.allPages)
  private static let refetch = PageRunInput(.refetch)
}

private func areEquivalent(_ lhs: (any RunInput)?, _ rhs: (any RunInput)?) -> Bool {
  if lhs === rhs { return true }
  guard let lhs, let rhs else { return false }
  return areEqual(lhs.value, rhs.value)
}

extension OperationContext {
  /// The context of a run that begins now, which lies over `base`: nothing of another run is left
  /// in it.
  func beginning(
    _ node: TaskNode, input: (any RunInput)?, over base: OperationContext
  ) -> OperationContext {
    var context = OperationContext(
      head: ContextNode.merging(head, over: base.head), settings: base.settings, run: node)
    if let input { context.input = input }
    return context
  }
}

/// A value that is a matter of the store: one that is passed to a run does not take its place.
protocol StoreBound {}

/// What was written under a key at one time, in whatever lists that is.
private final class Written: Sendable {
  let value: any Sendable

  init(_ value: any Sendable) {
    self.value = value
  }
}

/// A list of written values, the newest first, each key once; contexts share its tail.
final class ContextNode: Sendable {
  fileprivate let key: ObjectIdentifier
  fileprivate let written: Written
  fileprivate let next: ContextNode?
  /// The clock in this list, which is asked for at each change of a state.
  fileprivate let clock: ContextClock?

  fileprivate init(key: ObjectIdentifier, written: Written, next: ContextNode?) {
    self.key = key
    self.written = written
    self.next = next
    clock = written.value as? ContextClock ?? next?.clock
  }

  func node(for key: ObjectIdentifier) -> ContextNode? {
    var node = Optional(self)
    while let current = node {
      if current.key == key { return current }
      node = current.next
    }
    return nil
  }

  fileprivate static func setting(
    _ key: ObjectIdentifier, to written: Written, in head: ContextNode?
  ) -> ContextNode {
    ContextNode(key: key, written: written, next: removing(key, from: head))
  }

  private static func removing(_ key: ObjectIdentifier, from head: ContextNode?) -> ContextNode? {
    guard let head, let old = head.node(for: key) else { return head }
    if head === old { return head.next }
    return ContextNode(key: head.key, written: head.written, next: removing(key, from: head.next))
  }

  fileprivate static func merging(_ top: ContextNode?, over base: ContextNode?) -> ContextNode? {
    guard let top else { return base }
    if top === base { return base }
    let merged = merging(top.next, over: base)
    if let present = merged?.node(for: top.key),
      present.written === top.written || top.written.value is any StoreBound
    {
      return merged
    }
    return setting(top.key, to: top.written, in: merged)
  }

  static func areEquivalent(_ lhs: ContextNode?, _ rhs: ContextNode?) -> Bool {
    if lhs === rhs { return true }
    return lhs.isCovered(by: rhs) && rhs.isCovered(by: lhs)
  }
}

extension ContextNode? {
  /// Tells whether `other` has an equal value for every key of this list.
  fileprivate func isCovered(by other: ContextNode?) -> Bool {
    var node = self
    while let current = node {
      guard let match = other?.node(for: current.key) else { return false }
      guard match.written === current.written || areSame(match.written.value, current.written.value)
      else { return false }
      node = current.next
    }
    return true
  }
}
