import Glibc

/// A mistake in the use of the library that is reported instead of thrown, because the library can
/// continue without harm.
///
/// Reports are written to standard error, one line each, unless `withHandler(_:operation:)` or
/// ``setHandler(_:)`` sets another handler. A report is made on the thread that noticed the mistake,
/// with no lock held.
public struct OperationIssue: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kind of a mistake.
  public struct Kind: Sendable, Hashable, RawRepresentable {
    /// The name of the kind, as it appears in the report.
    public let rawValue: String

    /// Creates a custom kind.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// A number or a duration that is outside the range of the call.
    public static let invalidValue = Kind(rawValue: "invalid value")
  }

  /// The kind of the mistake.
  public let kind: Kind
  /// The text of the report: what was done, where, and what the library does instead.
  public let message: String

  /// Creates an issue, which ``report()`` sends to the handler.
  public init(kind: Kind, message: String) {
    self.kind = kind
    self.message = message
  }

  /// A line with the kind and the message.
  public var description: String { "\(kind.rawValue): \(message)" }
}

extension OperationIssue {
  /// A function that receives reports.
  public typealias Handler = @Sendable (OperationIssue) -> Void

  /// A handler as a value of a type of its own. Swift 6.3 inlines `withHandler` into optimised programs, which
  /// cannot find the type of an optional function there, and crash.
  private struct ScopedHandler: Sendable {
    let handler: Handler
  }

  @TaskLocal private static var scoped: ScopedHandler?

  private static let processHandler = LastElement<Handler>()

  /// Sends the reports of `operation`, and of the tasks that it starts, to `handler`.
  ///
  /// - Parameters:
  ///   - handler: Called on the thread that noticed the mistake, with no lock held.
  ///   - operation: Called once, on the calling thread.
  /// - Throws: The error of `operation`.
  public static func withHandler<Output>(
    _ handler: @escaping Handler, operation: () throws -> Output
  ) rethrows -> Output {
    try $scoped.withValue(ScopedHandler(handler: handler), operation: operation)
  }

  /// Sends the reports of `operation`, and of the tasks that it starts, to `handler`.
  ///
  /// - Parameters:
  ///   - handler: Called on the thread that noticed the mistake, with no lock held.
  ///   - operation: Called once, on the caller's actor.
  /// - Throws: The error of `operation`.
  nonisolated(nonsending) public static func withHandler<Output>(
    _ handler: @escaping Handler, operation: nonisolated(nonsending) () async throws -> Output
  ) async rethrows -> Output {
    try await $scoped.withValue(ScopedHandler(handler: handler), operation: operation)
  }

  /// Sends every report of the process, outside of `withHandler(_:operation:)`, to `handler`.
  ///
  /// - Parameter handler: The new handler; `nil` restores standard error.
  public static func setHandler(_ handler: Handler?) { processHandler.set(handler) }

  /// Sends the issue to the current handler.
  public func report() {
    if let handler = Self.scoped?.handler ?? Self.processHandler.value {
      // A task that the handler starts does not work for the run that has made the report.
      return CurrentWork.without { handler(self) }
    }
    writeToStandardError("swift-operation: \(self)")
  }

  /// Sends an issue to the current handler.
  package static func report(_ kind: Kind, _ message: String) {
    OperationIssue(kind: kind, message: message).report()
  }
}

/// Writes a line to standard error. A failure to write cannot be reported anywhere.
package func writeToStandardError(_ line: String) { writeLine(line, to: STDERR_FILENO) }

/// Writes a line to a file, without a buffer.
package func writeLine(_ line: String, to descriptor: Int32) {
  // The description of an error can have several lines.
  let bytes = Array("\(line.split(whereSeparator: \.isNewline).joined(separator: " "))\n".utf8)
  // One call for the whole line, so that the lines of several threads do not mix.
  _ = write(descriptor, bytes, bytes.count)
}
