import FoundationEssentials

/// What a run in flight notifies its store of.
enum RunStep: Sendable {
  case paused(Bool)
  /// The run waits for a retry until a date, after a number of attempts, or, with `nil`, the attempt begins.
  case retry(OperationRetry<any Error>?)
  /// A further attempt begins.
  case attemptBegan(Int)
  /// A page begins or ends, with its identifier.
  case pageBegan(any Sendable)
  case pageEnded(any Sendable)
}

/// A call of a mutation that is saved until it has ended.
struct RunCall: Sendable {
  let id: String
  /// The number of attempts that earlier programs have begun.
  let earlierAttempts: Int
  /// Called when a further attempt begins.
  let attemptBegan: @Sendable () -> Void
  /// Called when the call has ended and was not cancelled, before its callers continue.
  let didEnd: @Sendable (_ failure: (any Error)?) -> Void
}

extension OperationContext {
  private static let process = UUID().uuidString

  /// An identifier of the call that a run makes, which a request can send as an idempotency key, so that
  /// a server recognises a call that arrives again. `nil` outside of a run.
  ///
  /// It is the same in all attempts of the run, and, for a mutation with `persisted()`, also after a
  /// restart of the program. No other call has it.
  public var operationCallID: String? {
    call?.id ?? runNode.map { "\(Self.process)-\($0.id.rawValue)" }
  }

  /// The number of attempts that were begun for this call before this one, by this program and, for a
  /// mutation with `persisted()`, by earlier ones. A program that ended while the call waited counts as
  /// one. Without `persisted()` the count begins again when the request is restarted, as by
  /// `fetch(restarting: true)`.
  public var operationCallAttempt: Int { (call?.earlierAttempts ?? 0) + operationRetryIndex }

  /// Notifies the store of the run, if it has one, of a step.
  func note(_ step: RunStep) { runNode?.driver?.note(step, in: self) }

  /// Whether an attempt needs no connection.
  func mayAttemptOffline(isRetry: Bool) -> Bool {
    let mode = settings.values.networkMode
    return mode == .always || (mode == .offlineFirst && !isRetry)
  }

  /// Whether an attempt needs no connection, or there is one.
  func mayAttemptNow(isRetry: Bool) -> Bool {
    mayAttemptOffline(isRetry: isRetry) || ConnectionRunSpecification().isSatisfied(in: self)
  }

  /// Waits for a connection before an attempt, where the request's network mode requires one.
  ///
  /// Returns `false` if the task was cancelled before there was a connection.
  // Not inlined: its variables would be in the frames of all runs, and the benchmark fetch is over its limit.
  @inline(never)
  nonisolated(nonsending) func mayAttempt(isRetry: Bool) async -> Bool {
    if mayAttemptNow(isRetry: isRetry) { return true }
    note(.paused(true))
    defer { note(.paused(false)) }
    return await ConnectionRunSpecification().waitUntilSatisfied(in: self)
  }
}
