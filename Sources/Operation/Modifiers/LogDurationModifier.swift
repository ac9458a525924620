import ReactiveStreams

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
    let result = await base.result(isolation: isolation, in: context, with: continuation)
    let seconds = (clock.elapsed() - start).inSeconds
    switch result {
    case .success: log("\(name) succeeded after \(seconds) s")
    case .failure(let error): log("\(name) failed after \(seconds) s: \(error)")
    }
    return try result.get()
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
      LogDurationModifier(
        name: name ?? "\(plainType)", log: log ?? { writeToStandardError($0) }))
  }
}
