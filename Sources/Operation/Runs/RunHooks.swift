import FoundationEssentials

/// What a run in flight notifies its store of.
struct RunHooks: Sendable {
  enum Step: Sendable {
    case paused(Bool)
    /// A further attempt begins.
    case attemptBegan(Int)
    /// A page begins or ends, with its identifier as text.
    case pageBegan(String)
    case pageEnded(String)
  }

  /// The saved call that the run makes; `nil` for any other run.
  var call: RunCall?
  let note: @Sendable (Step) -> Void
}

/// A call of a mutation that is saved until it has ended.
struct RunCall: Sendable {
  let id: String
  /// The number of attempts that earlier programs have begun.
  let earlierAttempts: Int
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
    hooks?.call?.id ?? runNode.map { "\(Self.process)-\($0.id.rawValue)" }
  }

  /// The number of attempts that were begun for this call before this one, by this program and, for a
  /// mutation with `persisted()`, by earlier ones. A program that ended while the call waited counts as
  /// one. Without `persisted()` the count begins again when the request is restarted, as by
  /// `fetch(restarting: true)`.
  public var operationCallAttempt: Int { (hooks?.call?.earlierAttempts ?? 0) + operationRetryIndex }

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
  nonisolated(nonsending) func mayAttempt(isRetry: Bool) async -> Bool {
    if mayAttemptNow(isRetry: isRetry) { return true }
    hooks?.note(.paused(true))
    defer { hooks?.note(.paused(false)) }
    return await ConnectionRunSpecification().waitUntilSatisfied(in: self)
  }
}
