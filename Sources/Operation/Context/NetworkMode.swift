/// The rule by which the runs of a request wait for a connection.
///
/// The connection is that of the context's ``OperationContext/networkObserver``. The default is
/// ``always``.
public enum NetworkMode: String, Sendable, Hashable, Codable {
  /// Runs do not wait: the request needs no network, or detects by itself that there is none.
  case always
  /// The first attempt and each retry wait: without a connection the run is paused.
  case online
  /// The first attempt does not wait. Without a connection, a retry is paused.
  case offlineFirst
}
