/// What every store of a client gets where its request says nothing else.
///
/// ```swift
/// var defaults = OperationDefaults.standard
/// defaults.retryLimit = 5
/// let client = OperationClient(defaults: defaults)
/// ```
public struct OperationDefaults: Sendable {
  /// How many retries a query or a page makes; a client reports a negative number, and takes it as
  /// zero.
  public var retryLimit: Int
  /// How long a query or a page waits before each retry.
  public var backoff: OperationBackoffFunction
  /// Whether runs of a query or a page that are asked for at the same time are one.
  public var isDeduplicated: Bool
  /// Whether a query or a page runs when it is stale and gets its first subscriber.
  public var runsAutomatically: Bool
  /// How many retries a mutation makes; a client reports a negative number, and takes it as zero.
  public var mutationRetryLimit: Int
  /// Whether runs wait for a connection.
  public var networkMode: NetworkMode
  /// Who knows whether there is a connection; `nil` leaves it to the client's context, and so to the
  /// system.
  public var networkObserver: (any NetworkObserver)?
  /// Knows whether the program is in the foreground; `nil` stands for that of the system.
  public var applicationActivityObserver: (any ApplicationActivityObserver)?
  /// Tells of memory running short; `nil` stands for that of the system.
  public var memoryPressureSource: (any MemoryPressureSource)?
  /// Changes the context that new stores begin with, after the other defaults and before their
  /// requests; called once for each kind of request, when a client is made.
  public var setup: @Sendable (inout OperationContext, OperationKind) -> Void

  /// Creates defaults; each is that of ``standard`` unless given.
  public init(
    retryLimit: Int = 3,
    backoff: OperationBackoffFunction = .exponential(.seconds(1)).jittered()
      .capped(at: .seconds(30)),
    isDeduplicated: Bool = true,
    runsAutomatically: Bool = true,
    mutationRetryLimit: Int = 0,
    networkMode: NetworkMode = .always,
    networkObserver: (any NetworkObserver)? = nil,
    applicationActivityObserver: (any ApplicationActivityObserver)? = nil,
    memoryPressureSource: (any MemoryPressureSource)? = nil,
    setup: @escaping @Sendable (inout OperationContext, OperationKind) -> Void = { _, _ in }
  ) {
    self.retryLimit = retryLimit
    self.backoff = backoff
    self.isDeduplicated = isDeduplicated
    self.runsAutomatically = runsAutomatically
    self.mutationRetryLimit = mutationRetryLimit
    self.networkMode = networkMode
    self.networkObserver = networkObserver
    self.applicationActivityObserver = applicationActivityObserver
    self.memoryPressureSource = memoryPressureSource
    self.setup = setup
  }

  /// Three retries with jittered exponential backoff (1 s, doubling, capped at 30 s), deduplication
  /// and automatic runs for queries and pages; none of these for mutations.
  public static let standard = OperationDefaults()

  /// As ``standard``, without retries.
  public static let testing = OperationDefaults(retryLimit: 0)

  /// The defaults with numbers that can be; what is not, is reported.
  var checked: OperationDefaults {
    var defaults = self
    defaults.retryLimit = retryLimit.checkedCount(for: "The default retry limit")
    defaults.mutationRetryLimit = mutationRetryLimit.checkedCount(
      for: "The default mutation retry limit")
    return defaults
  }

  /// The context of a store before its request has written into it.
  func context(for kind: OperationKind, over base: OperationContext) -> OperationContext {
    var context = base
    var values = RunSettings.Values()
    values.backoff = backoff
    values.networkMode = networkMode
    values.isStored = true
    switch kind {
    case .query, .pages:
      values.retryLimit = retryLimit
      values.deduplication = isDeduplicated ? .equivalentContexts : .never
      values.runsAutomatically = runsAutomatically
    case .mutation:
      values.retryLimit = mutationRetryLimit
      values.runsAutomatically = false
    }
    context.settings.values = values
    if let networkObserver { context.networkObserver = networkObserver }
    if let observer = applicationActivityObserver { context.applicationActivityObserver = observer }
    if let source = memoryPressureSource { context.memoryPressureSource = source }
    setup(&context, kind)
    return context
  }
}
