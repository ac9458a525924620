import FoundationEssentials
import Glibc
import ReactiveStreams

/// Receives the events of a client.
///
/// ```swift
/// let logging = client.log(to: StandardErrorLogger())
/// ```
public protocol OperationLogger: Sendable {
  /// Handles an event. Called in the order of the events, by one thread at a time, on any thread and
  /// with no lock held. The thread that causes an event may wait for the call.
  func log(_ event: OperationClientEvent)
}

/// A logger that writes one line to standard error for each event: the date in UTC, the kind of
/// request, the path, and what happened.
public struct StandardErrorLogger: OperationLogger {
  /// The file descriptor that lines are written to.
  var descriptor = STDERR_FILENO

  /// Creates a logger.
  public init() {}

  /// Writes a line, without a buffer.
  public func log(_ event: OperationClientEvent) {
    let date = event.date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    writeLine("\(date) \(event)", to: descriptor)
  }
}
