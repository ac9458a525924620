import FoundationEssentials
import Glibc
public import ReactiveStreams

extension OperationClient {
  /// What happens in this client from now on; of a reader that is slow, the newest thousand events
  /// are kept.
  public var events: EventStream<OperationClientEvent> { events(buffering: .newest(1_000)) }

  /// What happens in this client from now on, kept as `buffering` says.
  public func events(buffering: StreamBuffering) -> EventStream<OperationClientEvent> {
    EventStream(
      StreamSource { [hub] handler in
        hub.events.subscribe { handler(.element($0)) }
      }, buffering: buffering)
  }

  /// Gives each event to a logger, in its order, until the subscription goes.
  public func log(to logger: some OperationLogger) -> OperationSubscription {
    hub.events.subscribe { logger.log($0) }
  }
}

/// Takes in what happens in a client.
public protocol OperationLogger: Sendable {
  /// Takes in an event; called on any thread, with no lock held, with one event after the other.
  func log(_ event: OperationClientEvent)
}

/// Writes a line to standard error for each event: the date in UTC, the kind, the path, what
/// happened.
public struct StandardErrorLogger: OperationLogger {
  private let descriptor: Int32

  /// Creates a logger.
  public init() {
    self.init(descriptor: STDERR_FILENO)
  }

  init(descriptor: Int32) {
    self.descriptor = descriptor
  }

  /// Writes a line, at once.
  public func log(_ event: OperationClientEvent) {
    let date = event.date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    let text = "\(event)".split(whereSeparator: \.isNewline).joined(separator: " ")
    let line = Array("\(date) \(text)\n".utf8)
    // One call for the whole line, so that those of several threads do not mix.
    _ = line.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
  }
}
