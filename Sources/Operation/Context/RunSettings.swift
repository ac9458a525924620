/// What the modifiers of a request and the defaults of its client set for its runs.
///
/// The last modifier of a kind overrides the ones before it, and each of them the default. Copies
/// share one box until they are written.
struct RunSettings: Sendable {
  struct Values: Sendable {
    var retry = RetrySettings()
    var deduplication = Deduplication.never
    var staleness = Staleness.always
    var automatic = AutomaticRunning()
    var pages = PageSettings()
    /// The number of attempts in the history of a mutation.
    var maxHistory = 100
    /// The scope in which runs are queued; `nil` if they are not.
    var serialScope: SerialScope?
    var networkMode = NetworkMode.always
    /// How long a value may be returned in place of a failure.
    var staleIfError: Duration?
    /// How values or calls are saved; `nil` if they are not.
    var persistence: PersistenceSettings?
    /// The modifiers, to compare those of two requests.
    var modifiers: [any Sendable] = []
  }

  private final class Box: Sendable {
    let values: Values

    init(_ values: Values) { self.values = values }
  }

  private static let initial = Box(Values())
  private var box = RunSettings.initial

  var values: Values {
    _read { yield box.values }
    set { box = Box(newValue) }
  }

  /// Whether a store does the retries, because the defaults of its client set some.
  var isRetriedByStore: Bool { !values.retry.isPlaced && values.retry.limit > 0 }

  func isIdentical(to other: RunSettings) -> Bool { box === other.box }
}

struct RetrySettings: Sendable {
  /// The number of retries.
  var limit = 0
  /// Whether a modifier of the request does the retries, so that the store does not.
  var isPlaced = false
  var backoff = OperationBackoffFunction.standard
  /// The condition that a retry waits for.
  var condition: (any OperationRunSpecification)?
}

/// When a store runs its request without a caller.
struct AutomaticRunning: Sendable {
  /// Whether a stale store runs for its first subscriber; `nil` if neither a modifier nor a default
  /// set it: then only an invalidation runs an observed store.
  var isEnabled: Bool?
  /// The condition of these runs, which also starts one when it becomes satisfied; `nil` is always.
  var condition: (any OperationRunSpecification)?
  /// The controllers of the store, in the order of the modifiers.
  var controllers: [ControllerAttachment] = []
  /// What else runs the request while it is observed, such as polling.
  var triggers: [RerunTrigger] = []
  /// The name and the priority of these runs; `nil` for neither.
  var task: OperationTaskConfiguration.Box?
}

/// How the values of a query, or the calls of a mutation, are saved.
struct PersistenceSettings: Sendable {
  /// The name under which they are saved; `nil` is that of the path.
  var name: String?
  /// The age from which a value, or a call, is dropped.
  var maxAge: Duration?
  var version = 0
  /// The `StorageCoding` of the value or of the arguments; `nil` is JSON, if the type is `Codable`.
  var coding: (any Sendable)?
}

/// Rules of a paginated request. Closures and values are of types that only the request knows.
struct PageSettings: Sendable {
  /// The number of pages that are kept.
  var limit = Int.max
  /// The `PaginatedRefetch` of the request.
  var refetch: (any Sendable)?
  /// The `PageEdgeFinder` of the request.
  var edges: (any Sendable)?
  /// The `PageHandler`s of the request, in the order of the modifiers.
  var handlers: [any Sendable] = []
}

extension OperationBackoffFunction {
  /// Waits 1 s, 2 s, 4 s … up to 30 s: the backoff of a retry without one of its own.
  static let standard = exponential(.seconds(1)).capped(at: .seconds(30))
}

/// A scope in which a number of runs can be in flight. Scopes with different numbers are the same.
struct SerialScope: Sendable, Hashable {
  private var element: OperationPath.Element
  /// The number of runs in flight.
  let limit: Int

  static func == (lhs: SerialScope, rhs: SerialScope) -> Bool { lhs.element == rhs.element }

  func hash(into hasher: inout Hasher) { hasher.combine(element) }

  /// Creates a scope. One that is not equal to itself is reported, and is one scope with all such
  /// values of its type.
  init(_ scope: some Hashable & Sendable, limit: Int, of request: any Any.Type) {
    element = OperationPath.Element(scope)
    self.limit = limit
    if element == element { return }
    OperationIssue.report(
      .unequalIdentity,
      """
      The scope of \(request) cannot be \(scope), which is not equal to itself; all such scopes are \
      taken as one.
      """)
    element = OperationPath.Element(ObjectIdentifier(type(of: scope)))
  }
}

/// The rule that decides which runs of one store are one run.
enum Deduplication: Sendable {
  case never
  /// Runs in equivalent contexts.
  case equivalentContexts
  /// Runs in contexts for which a predicate returns `true`.
  case by(@Sendable (OperationContext, OperationContext) -> Bool)
}

/// The rule that decides when a value is stale.
enum Staleness: Sendable {
  case always
  case never
  case after(Duration)
  /// When a predicate of the state returns `true`. It returns `nil` for a state of another type.
  case when(@Sendable (any Sendable, OperationContext) -> Bool?)

  /// Whether a valid value can be stale.
  var canBecomeStale: Bool { if case .never = self { false } else { true } }
}
