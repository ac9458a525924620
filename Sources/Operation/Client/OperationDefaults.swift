/// The rules of a client for requests whose modifiers do not state others.
///
/// ```swift
/// var defaults = OperationDefaults.standard
/// defaults.retryLimit = 5
/// let client = OperationClient(defaults: defaults)
/// ```
///
/// A modifier on a request replaces the default of the same kind. A client reads its defaults when it
/// is created.
public struct OperationDefaults: Sendable {
  /// The number of retries of a query or a paginated request: 3 by default. A client reports a negative
  /// number, and takes it as zero.
  public var retryLimit: Int
  /// The wait before each retry. By default it is 1 s, doubles, is capped at 30 s, and has jitter.
  public var backoff: OperationBackoffFunction
  /// A Boolean value that indicates whether a run of a query or a paginated request joins a run in
  /// flight that is the same; `true` by default.
  public var isDeduplicated: Bool
  /// A Boolean value that indicates whether a query or a paginated request runs when its store is
  /// stale and gets its first subscriber; `true` by default.
  public var runsAutomatically: Bool
  /// The number of retries of a mutation: 0 by default. A client reports a negative number, and takes
  /// it as zero.
  public var mutationRetryLimit: Int
  /// The rule by which runs wait for a connection; ``NetworkMode/always`` by default, which does
  /// not wait.
  public var networkMode: NetworkMode
  /// The observer of the connection. `nil`, the default, uses the one in the client's context, which
  /// is that of the system unless set.
  public var networkObserver: (any NetworkObserver)?
  /// The observer of whether the program is suspended. `nil`, the default, uses the one in the client's
  /// context, which is that of the system unless set.
  public var applicationActivityObserver: (any ApplicationActivityObserver)?
  /// The source of memory pressure. `nil`, the default, uses the one in the client's context, which is
  /// that of the system unless set.
  public var memoryPressureSource: (any MemoryPressureSource)?
  /// The stale time of queries and paginated requests. `nil`, the default, makes a value stale as soon
  /// as it arrives. A client reports a negative one, and takes it as zero.
  public var staleTime: Duration?
  /// Whether, and how, the values of queries and paginated requests are saved, as JSON; `nil`, the default,
  /// saves those with `persisted()`. A value whose type is not `Codable` is reported.
  public var persistence: OperationPersistence?
  /// A closure that changes the initial context of stores. It is called once for each kind of
  /// request when a client is created, and when its defaults are changed, after the other defaults are set
  /// and before any request's `setup(context:)`.
  public var setup: @Sendable (inout OperationContext, OperationKind) -> Void

  /// Creates defaults. A parameter that is not passed has the value of ``standard``.
  ///
  /// Each parameter is the initial value of the property with its name, which describes it.
  public init(
    retryLimit: Int = 3,
    backoff: OperationBackoffFunction = .exponential(.seconds(1)).capped(at: .seconds(30))
      .jittered(),
    isDeduplicated: Bool = true,
    runsAutomatically: Bool = true,
    mutationRetryLimit: Int = 0,
    networkMode: NetworkMode = .always,
    networkObserver: (any NetworkObserver)? = nil,
    applicationActivityObserver: (any ApplicationActivityObserver)? = nil,
    memoryPressureSource: (any MemoryPressureSource)? = nil,
    staleTime: Duration? = nil,
    persistence: OperationPersistence? = nil,
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
    self.staleTime = staleTime
    self.persistence = persistence
    self.setup = setup
  }

  /// The defaults of a client.
  ///
  /// Queries and pages have three retries with jittered exponential backoff (1 s, doubling, capped at
  /// 30 s), are deduplicated, and run automatically. Mutations have none of these.
  public static let standard = OperationDefaults()

  /// The defaults for tests: ``standard`` without retries.
  public static let testing = OperationDefaults(retryLimit: 0)

  /// The defaults without negative numbers, which are reported.
  var checked: OperationDefaults {
    var defaults = self
    defaults.retryLimit = retryLimit.checkedCount(for: "The default retry limit")
    defaults.mutationRetryLimit = mutationRetryLimit.checkedCount(
      for: "The default mutation retry limit")
    defaults.staleTime = staleTime?.checked(for: "The default stale time")
    defaults.persistence?.maxAge = persistence?.maxAge?.checked(
      for: "The default age of what is saved")
    return defaults
  }

  /// Returns the initial context of stores, over that of the client.
  func context(for kind: OperationKind, over base: OperationContext) -> OperationContext {
    var context = base
    var values = RunSettings.Values()
    values.retry.backoff = backoff
    values.networkMode = networkMode
    switch kind {
    case .query, .pages:
      values.retry.limit = retryLimit
      values.deduplication = isDeduplicated ? .equivalentContexts : .never
      values.automatic.isEnabled = runsAutomatically
      if let staleTime { values.staleness = .after(staleTime) }
      values.persistence = persistence.map {
        PersistenceSettings(maxAge: $0.maxAge, version: $0.version)
      }
    case .mutation:
      values.retry.limit = mutationRetryLimit
      values.automatic.isEnabled = false
    }
    context.settings.values = values
    if let networkObserver { context.networkObserver = networkObserver }
    if let observer = applicationActivityObserver { context.applicationActivityObserver = observer }
    if let source = memoryPressureSource { context.memoryPressureSource = source }
    setup(&context, kind)
    return context
  }
}

/// How the values of several requests are saved.
public struct OperationPersistence: Sendable, Hashable {
  /// The age from which a saved value is dropped when it is loaded; `nil` is none.
  public var maxAge: Duration?
  /// The version of the encoding. What was saved with a lower one is dropped: only `persisted(…)` of a
  /// request can migrate it.
  public var version: Int

  /// Creates rules.
  ///
  /// - Parameters:
  ///   - maxAge: The age from which a saved value is dropped; `nil`, the default, is none.
  ///   - version: The version of the encoding; 0 by default.
  public init(maxAge: Duration? = nil, version: Int = 0) {
    self.maxAge = maxAge
    self.version = version
  }
}
