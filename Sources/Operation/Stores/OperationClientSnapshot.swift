public import FoundationEssentials

/// The contents of a client as plain data: to print, to send, or to compare.
public struct OperationClientSnapshot: Sendable, Hashable, Codable {
  /// A store of the client.
  public struct Store: Sendable, Hashable, Codable {
    /// The elements of the path as text.
    public var path: [String]
    /// The kind of request that the store is for.
    public var kind: OperationKind
    /// The status of the state.
    public var status: Status
    /// The age of the value in seconds; `nil` without a value. It is negative if the clock was set
    /// back since.
    public var age: Double?
    /// A Boolean value that indicates whether the value is missing or out of date.
    public var isStale: Bool
    /// The number of subscribed handlers and stream iterators.
    public var subscribers: Int
    /// The number of leases that callers and subscribers hold on runs.
    public var leases: Int
    /// The last error as text; `nil` if there was none since the last value.
    public var lastError: String?
    /// The runs that are scheduled or in flight, oldest first.
    public var runs: [Run]
  }

  /// The status of a store's state.
  public enum Status: String, Sendable, Hashable, Codable {
    /// There is no result yet.
    case idle
    /// A run is scheduled or in flight.
    case loading
    /// Every run waits for a connection.
    case paused
    /// The last result is a value.
    case success
    /// The last result is a failure.
    case failure
  }

  /// A run of a store.
  public struct Run: Sendable, Hashable, Codable {
    /// The number of the run, which is unique in the process.
    public var id: UInt64
    /// The cause of the run.
    public var cause: OperationRun.Cause
    /// A Boolean value that indicates whether the run has been started.
    public var isStarted: Bool
  }

  /// The date of the snapshot, by the client's clock.
  public var date: Date
  /// The stores, in the order of their paths as text.
  public var stores: [Store]
}
