import Glibc
import Synchronization

/// A mistake in the use of the library that is reported and not thrown, because the library can go
/// on without harm.
///
/// Reports go to standard error, one line each, unless `withHandler(_:operation:)` or
/// ``setHandler(_:)`` says otherwise. A report is made on the thread that noticed the mistake, with
/// no lock held.
public struct OperationIssue: Error, Sendable, Hashable, CustomStringConvertible {
  /// What kind of mistake it is.
  public struct Kind: Sendable, Hashable, RawRepresentable {
    /// The name of the kind, as it appears in the report.
    public let rawValue: String

    /// Creates a kind of one's own.
    public init(rawValue: String) {
      self.rawValue = rawValue
    }

    /// A number, or a duration, that is outside of what the call can take.
    public static let invalidValue = Kind(rawValue: "invalid value")
  }

  /// The kind of the mistake.
  public let kind: Kind
  /// What was done, where, and what the library does instead.
  public let message: String

  /// Creates an issue; ``report()`` makes it known.
  public init(kind: Kind, message: String) {
    self.kind = kind
    self.message = message
  }

  /// One line with the kind and the message.
  public var description: String { "\(kind.rawValue): \(message)" }
}

extension OperationIssue {
  /// Takes reports.
  public typealias Handler = @Sendable (OperationIssue) -> Void

  @TaskLocal private static var scopedHandler: Handler?

  private static let processHandler = Mutex<Handler>(writeToStandardError)

  /// Sends the reports that `operation` and the tasks that it starts make to `handler`.
  public static func withHandler<Output>(
    _ handler: @escaping Handler, operation: () throws -> Output
  ) rethrows -> Output {
    try $scopedHandler.withValue(handler, operation: operation)
  }

  /// Sends the reports that `operation` and the tasks that it starts make to `handler`.
  nonisolated(nonsending) public static func withHandler<Output>(
    _ handler: @escaping Handler, operation: nonisolated(nonsending) () async throws -> Output
  ) async rethrows -> Output {
    try await $scopedHandler.withValue(handler, operation: operation)
  }

  /// Sends every report of the process, where no scope says otherwise, to `handler`; `nil` stands
  /// for standard error.
  public static func setHandler(_ handler: Handler?) {
    let new = handler ?? writeToStandardError
    let old = processHandler.withLock { handler in
      let old = handler
      handler = new
      return old
    }
    // Released without the lock: the optimiser moves the release of an unused result under it.
    withExtendedLifetime(old) {}
  }

  /// Makes the issue known to the handler in force.
  public func report() {
    let handler = Self.scopedHandler ?? Self.processHandler.withLock { $0 }
    handler(self)
  }

  private static func writeToStandardError(_ issue: OperationIssue) {
    // That nobody reads it, or that it was closed, is nothing that could be reported.
    let line = Array("swift-operation: \(issue)\n".utf8)
    _ = write(STDERR_FILENO, line, line.count)
  }
}
