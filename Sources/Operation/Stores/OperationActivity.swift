/// The numbers of stores of a client that are running, paused, or have failed.
public struct OperationActivity: Sendable, Hashable, Codable {
  /// The numbers of stores for one kind of request. A store counts in one of them at most.
  public struct Counts: Sendable, Hashable, Codable {
    /// The number of stores with a run that is scheduled or in flight, and not paused.
    public var running = 0
    /// The number of stores all of whose runs wait for a connection.
    public var paused = 0
    /// The number of stores that have failed, and have not been run, written or reset since.
    public var failed = 0

    /// Creates counts; each is zero unless passed.
    public init(running: Int = 0, paused: Int = 0, failed: Int = 0) {
      self.running = running
      self.paused = paused
      self.failed = failed
    }
  }

  /// The counts of queries.
  public var queries = Counts()
  /// The counts of paginated requests.
  public var pages = Counts()
  /// The counts of mutations.
  public var mutations = Counts()

  /// Creates an activity with zero counts.
  public init() {}

  /// The counts of a kind of request.
  public subscript(kind: OperationKind) -> Counts {
    get {
      switch kind {
      case .query: queries
      case .pages: pages
      case .mutation: mutations
      }
    }
    set {
      switch kind {
      case .query: queries = newValue
      case .pages: pages = newValue
      case .mutation: mutations = newValue
      }
    }
  }
}
