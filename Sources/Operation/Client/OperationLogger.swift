import FoundationEssentials
import Glibc

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
  let descriptor: Int32

  /// Writes a line, without a buffer.
  public func log(_ event: OperationClientEvent) {
    let date = event.date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    let text = "\(event)".split(whereSeparator: \.isNewline).joined(separator: " ")
    let line = Array("\(date) \(text)\n".utf8)
    // One call for the whole line, so that the lines of several threads do not mix.
    _ = write(descriptor, line, line.count)
  }
}

extension StandardErrorLogger {
  /// Creates a logger.
  public init() { self.init(descriptor: STDERR_FILENO) }
}
