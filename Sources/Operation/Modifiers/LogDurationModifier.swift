import FoundationEssentials
import Glibc

/// A modifier that logs how long each run of a request takes.
public struct LogDurationModifier<Base: OperationRequest>: OperationModifier {
  let name: String
  let log: @Sendable (String) -> Void

  /// Runs the request, and logs how long it took.
  ///
  /// - Throws: The failure of the request.
  public func run(
    isolation: isolated (any Actor)?, in context: OperationContext, using base: Base,
    with continuation: OperationContinuation<Base.Value, Base.Failure>
  ) async throws(Base.Failure) -> Base.Value {
    let clock = context.operationClock
    let start = clock.elapsed()
    do throws(Base.Failure) {
      let value = try await base.run(isolation: isolation, in: context, with: continuation)
      log("\(name) succeeded after \((clock.elapsed() - start).inSeconds) s")
      return value
    } catch {
      log("\(name) failed after \((clock.elapsed() - start).inSeconds) s: \(error)")
      throw error
    }
  }
}

extension OperationRequest {
  /// Logs how long each run takes by the clock of the context; below a retry, each attempt.
  ///
  /// - Parameters:
  ///   - name: The beginning of the line. The default is the type of the request.
  ///   - log: Called with the line, which contains the time in seconds, on any thread, with no lock
  ///     held. The default writes to standard error.
  public func logDuration(
    _ name: String? = nil, to log: (@Sendable (String) -> Void)? = nil
  ) -> ModifiedOperation<Self, LogDurationModifier<Self>> {
    modifier(
      LogDurationModifier(name: name ?? "\(Self.self)", log: log ?? writeLineToStandardError))
  }
}

@Sendable
private func writeLineToStandardError(_ line: String) {
  let bytes = Array((line + "\n").utf8)
  _ = write(STDERR_FILENO, bytes, bytes.count)
}
