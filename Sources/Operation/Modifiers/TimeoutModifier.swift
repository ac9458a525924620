/// The error of a request that took longer than its timeout.
public struct OperationTimeoutError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The time that the request had.
  public let duration: Duration

  /// A sentence that contains the time.
  public var description: String { "The operation took longer than \(duration)." }
}

/// A modifier that ends a run that takes too long.
///
/// A run that takes longer than its time by the clock of the context fails with
/// ``OperationTimeoutError``. It is cancelled, and its caller does not wait for it any longer, even
/// if the request ignores the cancellation; what the request yields later is dropped. Below a
/// retry, each attempt has the full time. The failure of a modified request is `any Error`.
public struct TimeoutModifier<Base: OperationRequest>: OperationModifier, Equatable {
  /// Any error: a timeout is no failure of the request's own type.
  public typealias Failure = any Error

  let duration: Duration

  /// Runs the request until it ends or its time is over.
  ///
  /// - Throws: The failure of the request, ``OperationTimeoutError``, or `CancellationError`.
  public func run(
    isolation: isolated (any Actor)?, in context: OperationContext, using base: Base,
    with continuation: OperationContinuation<Base.Value, any Error>
  ) async throws -> Base.Value {
    // The first of these: the end of the work, the end of its time, the cancellation of the caller.
    let end = OneShot<Result<Base.Value, any Error>>()
    let work = Task(name: Task.name, executorPreference: context.executor) {
      // An attempt that was cancelled before it began must not run beside the next one.
      guard end.isOpen else { return }
      let openContinuation = OperationContinuation<Base.Value, Base.Failure> { result in
        if end.isOpen { continuation.yield(with: result.mapError { $0 }) }
      }
      let result = await base.result(isolation: isolation, in: context, with: openContinuation)
      end.finish(result.mapError { $0 })
    }
    let timer = Task(executorPreference: context.executor) {
      guard await context.operationClock.hasSlept(for: duration) else { return }
      end.finish(.failure(OperationTimeoutError(duration: duration)))
    }
    let result = await end.wait { .failure(CancellationError()) }
    // Before the retry is removed: an attempt that notes one later finds that it is cancelled, and removes it.
    work.cancel()
    timer.cancel()
    // The wait for a retry is over. The run may continue, in a modifier around this one.
    if case .failure(is OperationTimeoutError) = result { context.note(.retry(nil)) }
    return try result.get()
  }
}

extension OperationRequest where Failure == any Error {
  /// Fails with ``OperationTimeoutError`` when a run takes longer than `duration`.
  ///
  /// ``TimeoutModifier`` describes what happens to the run.
  ///
  /// - Parameter duration: The time by the clock of the context. A negative duration is reported,
  ///   and zero is used; of more than a hundred years, a hundred years are used.
  public func timeout(after duration: Duration) -> ModifiedOperation<Self, TimeoutModifier<Self>> {
    modifier(TimeoutModifier(duration: duration.checked(for: "The timeout of \(plainType)")))
  }
}

extension OperationRequest {
  /// Fails with ``OperationTimeoutError`` when a run takes longer than `duration`, and turns the
  /// failure into `any Error`. See ``TimeoutModifier``.
  @_disfavoredOverload
  public func timeout(after duration: Duration) -> ModifiedOperation<
    TransformedOperation<Self, Value, any Error>,
    TimeoutModifier<TransformedOperation<Self, Value, any Error>>
  > { TransformedOperation(base: self, value: { $0 }, failure: { $0 }).timeout(after: duration) }
}

extension MutationRequest {
  /// Fails with ``OperationTimeoutError`` when a run takes longer than `duration`, and turns the
  /// failure into `any Error`. See ``TimeoutModifier``.
  @_disfavoredOverload
  public func timeout(after duration: Duration) -> ModifiedOperation<
    TransformedMutation<Self, MutateValue, any Error>,
    TimeoutModifier<TransformedMutation<Self, MutateValue, any Error>>
  > { TransformedMutation(base: self, value: { $0 }, failure: { $0 }).timeout(after: duration) }
}

extension PaginatedRequest {
  /// Fails with ``OperationTimeoutError`` when a run takes longer than `duration`, and turns the
  /// failure into `any Error`. See ``TimeoutModifier``.
  @_disfavoredOverload
  public func timeout(
    after duration: Duration
  ) -> ModifiedOperation<TransformedPages<Self>, TimeoutModifier<TransformedPages<Self>>> {
    TransformedPages(base: self).timeout(after: duration)
  }
}
