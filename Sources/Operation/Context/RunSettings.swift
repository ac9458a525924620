import ReactiveStreams

/// What the modifiers of a request and the defaults of its client say about its runs.
///
/// The last modifier of a kind wins over the ones before it, and any of them over the default.
/// Copies share one box until they are written.
struct RunSettings: Sendable {
  struct Values: Sendable {
    var retryLimit = 0
    /// Whether a modifier of the request does the retries, so that nobody else must.
    var isRetryPlaced = false
    var backoff = OperationBackoffFunction.standard
    var deduplication = Deduplication.never
    var staleness = Staleness.always
    /// `nil` where nobody has said anything: then only an invalidation runs an observed store.
    var runsAutomatically: Bool?
    /// What has to hold for a run that nobody asked for.
    var automaticCondition: (@Sendable (OperationContext) -> Bool)?
    /// What runs the request by itself while it is observed.
    var rerunTriggers: [RerunTrigger] = []
    /// What controls the store from outside, in the order of the modifiers.
    var controllers: [ControllerAttachment] = []
    /// How many pages are kept at most.
    var maxPages = Int.max
    /// Which pages are fetched again with the whole; a rule of the request's own types.
    var refetch: (any Sendable)?
    /// Finds the edges of pages that somebody wrote; of the request's own types.
    var pageEdges: (any Sendable)?
    /// How many attempts a mutation remembers.
    var maxHistory = 100
    /// Within which scope runs wait for each other.
    var serialScope: SerialScope?
    /// Whether runs wait for a connection.
    var networkMode = NetworkMode.always
    /// Whether a store runs the request, and shares its runs.
    var isStored = false
  }

  final class Box: Sendable {
    let values: Values

    init(_ values: Values) {
      self.values = values
    }
  }

  private static let initial = Box(Values())

  var box = RunSettings.initial

  init() {}

  /// Whether a store does the retries, because the defaults of its client ask for some.
  var isRetriedByStore: Bool { !values.isRetryPlaced && values.retryLimit > 0 }

  /// Read in place: a copy of all of them is dear.
  var values: Values {
    _read { yield box.values }
    set { box = Box(newValue) }
  }
}

extension OperationBackoffFunction {
  /// Waits 1 s, 2 s, 4 s … up to 30 s: what a retry does without a backoff of its own.
  static let standard = exponential(.seconds(1)).capped(at: .seconds(30))
}

/// Subscribes to something that may want runs, for a context, and asks a store for them, which it
/// must not keep alive.
typealias RerunTrigger =
  @Sendable (OperationContext, any Rerunnable) -> OperationSubscription

/// A store, for what wants runs of it while it is observed.
protocol Rerunnable: AnyObject, Sendable {
  var presentState: any Sendable { get }

  /// Runs the request if it is stale.
  func rerunIfStale()
  /// Runs the request, and waits until that run has ended, or the task is cancelled.
  nonisolated(nonsending) func poll() async
  /// Reports a rule for a state of another type.
  func reportStateMismatch(of what: String, so consequence: String)
}

/// Gives a store to a controller; gives `nil` to a store with a state of another type.
typealias ControllerAttachment = @Sendable (any Rerunnable) -> AttachedController?

/// A controller that a store has been given to, until the store lets go of this.
final class AttachedController: Sendable {
  /// Tells the controller whether somebody observes the store.
  let tell: @Sendable (_ isObserved: Bool) -> Void
  private let subscription: OperationSubscription

  init(_ subscription: OperationSubscription, tell: @escaping @Sendable (Bool) -> Void) {
    self.subscription = subscription
    self.tell = tell
  }

  deinit {
    // Not left to its last copy, which the controller may have.
    subscription.cancel()
  }
}

/// Something that runs one after the other have in common.
struct SerialScope: Sendable, Hashable {
  private let element: OperationPath.Element

  init(_ scope: any Hashable & Sendable) {
    element = OperationPath.Element(scope)
  }

  /// The scope, or, where it is not equal to itself, which is reported, one of its type.
  init(checking scope: some Hashable & Sendable, for purpose: () -> String) {
    self.init(scope)
    if element.isEqualToItself { return }
    OperationIssue(
      kind: .unequalIdentity,
      message: """
        \(purpose()) cannot be \(scope), which is not equal to itself; all such scopes are taken as \
        one.
        """
    ).report()
    self.init(ObjectIdentifier(type(of: scope)))
  }
}

/// Which runs of one store are one.
enum Deduplication: Sendable {
  case never
  /// Runs in contexts that say the same to the request.
  case equivalentContexts
  /// Runs in contexts that satisfy a predicate.
  case by(@Sendable (OperationContext, OperationContext) -> Bool)
}

/// When a value that is there is not good enough any more.
enum Staleness: Sendable {
  case always
  case never
  case after(Duration)
  /// When a predicate of the state says so; it gives nil for a state of another type.
  case when(@Sendable (any Sendable, OperationContext) -> Bool?)
}
