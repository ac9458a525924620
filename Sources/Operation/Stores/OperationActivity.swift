/// How much of what a client holds is under way, waits for a connection, or has failed.
public struct OperationActivity: Sendable, Hashable, Codable {
  /// The stores of one kind of request, by where they are.
  public struct Counts: Sendable, Hashable, Codable {
    /// How many have a run that is scheduled or under way, and not paused.
    public var running = 0
    /// How many have runs that all wait for a connection.
    public var paused = 0
    /// How many have failed, and have not been run again.
    public var failed = 0

    /// Creates counts.
    public init(running: Int = 0, paused: Int = 0, failed: Int = 0) {
      self.running = running
      self.paused = paused
      self.failed = failed
    }
  }

  /// The queries.
  public var queries = Counts()
  /// The requests that read page by page.
  public var pages = Counts()
  /// The mutations.
  public var mutations = Counts()

  /// Creates an activity in which there is nothing.
  public init() {}

  /// The counts of a kind of request.
  public subscript(kind: OperationKind) -> Counts {
    _read {
      switch kind {
      case .query: yield queries
      case .pages: yield pages
      case .mutation: yield mutations
      }
    }
    _modify {
      switch kind {
      case .query: yield &queries
      case .pages: yield &pages
      case .mutation: yield &mutations
      }
    }
  }
}
