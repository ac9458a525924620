extension OperationContext {
  /// Which attempt of a retried run a context belongs to.
  struct Attempt: Sendable {
    var index = 0
    var retryLimit = 0
    /// Whether a retry further out already repeats what fails.
    var isRetried = false
  }

  /// How many attempts of this run have failed before this one: 0 is the first attempt.
  public var operationRetryIndex: Int { attempt.index }

  /// How many retries the run makes at most: it makes one attempt more than that.
  public var operationMaxRetries: Int { attempt.retryLimit }

  /// Whether a failure of this attempt is final.
  public var isLastRetryAttempt: Bool { attempt.index >= attempt.retryLimit }
}
