public import FoundationEssentials

/// What a client holds at one moment, as plain data: to print, to send, or to compare.
public struct OperationClientSnapshot: Sendable, Hashable, Codable {
  /// One store.
  public struct Store: Sendable, Hashable, Codable {
    /// The elements of the path, as text.
    public var path: [String]
    /// What kind of request the store is for.
    public var kind: OperationKind
    /// Where the state is: idle, loading, paused, success or failure.
    public var status: Status
    /// How many seconds ago the last value came; `nil` without one.
    public var age: Double?
    /// Whether the value is missing or out of date.
    public var isStale: Bool
    /// How many handlers and stream iterators listen.
    public var subscribers: Int
    /// How many callers and subscribers hold a run.
    public var leases: Int
    /// What went wrong last, as text; `nil` once a value has come.
    public var lastError: String?
    /// The runs that are scheduled or under way, oldest first.
    public var runs: [Run]
  }

  /// Where the state of a store is.
  public enum Status: String, Sendable, Hashable, Codable {
    /// Nothing has come yet.
    case idle
    /// A run is scheduled or under way.
    case loading
    /// Every run waits for a connection.
    case paused
    /// A value came last.
    case success
    /// A failure came last.
    case failure
  }

  /// A run of a store.
  public struct Run: Sendable, Hashable, Codable {
    /// The number of the run.
    public var id: UInt64
    /// Why the run was made.
    public var cause: OperationRun.Cause
    /// Whether it has been started.
    public var isStarted: Bool
  }

  /// When the snapshot was taken.
  public var date: Date
  /// The stores, in the order of their paths as text.
  public var stores: [Store]
}
