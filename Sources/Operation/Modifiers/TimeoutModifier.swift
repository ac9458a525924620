import Synchronization

/// What a request fails with that took longer than its timeout.
public struct OperationTimeoutError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The time that the request had.
  public let duration: Duration

  /// A line that names the time.
  public var description: String { "The operation took longer than \(duration)." }
}

/// Ends a run that takes too long.
public struct TimeoutModifier<Base: OperationRequest>: OperationModifier {
  /// A timeout is not a failure of the request's own type.
  public typealias Failure = any Error

  let duration: Duration

  /// Runs the request against the clock.
  public func run(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    using base: Base,
    with continuation: OperationContinuation<Base.Value, any Error>
  ) async throws -> Base.Value {
    let race = TimeoutRace<Base.Value>()
    let node = context.runNode
    let runner = TaskNode.currentTask
    let work = Task {
      // What was given up before it began must not begin beside the next attempt.
      guard race.isOpen else { return }
      // It is this one that would wait for itself.
      node?.runner.store(TaskNode.currentTask, ordering: .relaxed)
      let gated = OperationContinuation<Base.Value, Base.Failure> { result in
        if race.isOpen { continuation.yield(with: result.mapError { $0 }) }
      }
      do throws(Base.Failure) {
        let value = try await base.run(isolation: isolation, in: context, with: gated)
        race.finish(with: .success(value))
      } catch {
        race.finish(with: .failure(error))
      }
    }
    let timer = Task {
      guard await context.operationClock.hasSlept(for: duration) else { return }
      race.finish(with: .failure(OperationTimeoutError(duration: duration)))
    }
    defer {
      work.cancel()
      timer.cancel()
      node?.runner.store(runner, ordering: .relaxed)
    }
    return try await race.result().get()
  }
}

/// Whichever comes first: the end of the work, of the time, or of the caller's patience.
///
/// The lock guards the machine; continuations are resumed without it.
private final class TimeoutRace<Value: Sendable>: Sendable {
  private typealias Output = Result<Value, any Error>
  private typealias Continuation = UnsafeContinuation<Result<Value, any Error>?, Never>

  private let machine = Mutex(TaskMachine<Output, Continuation>())

  var isOpen: Bool { machine.withLock { !$0.isEnded } }

  func finish(with output: Result<Value, any Error>) {
    machine.withLock { $0.end(with: output) }.each { $0.resume(returning: output) }
  }

  nonisolated(nonsending) func result() async -> Result<Value, any Error> {
    let output = await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        switch machine.withLock({ $0.wait(.next(), waiter: continuation) }) {
        case .suspend: break
        case .resume(let output): continuation.resume(returning: output)
        }
      }
    } onCancel: {
      finish(with: .failure(CancellationError()))
    }
    return output ?? .failure(CancellationError())
  }
}

extension OperationRequest where Failure == any Error {
  /// Fails with ``OperationTimeoutError`` when a run takes longer than `duration` by the clock of
  /// the context; below a retry, when an attempt does.
  ///
  /// The run is cancelled and left at once, whether it listens or not.
  ///
  /// - Parameter duration: A negative one is reported and taken as zero, one of more than a hundred
  ///   years as these.
  public func timeout(
    after duration: Duration
  ) -> ModifiedOperation<Self, TimeoutModifier<Self>> {
    modifier(TimeoutModifier(duration: duration.checked(for: "The timeout of \(Self.self)")))
  }
}

extension OperationRequest {
  /// Fails with ``OperationTimeoutError`` when a run takes longer than `duration` by the clock of
  /// the context; below a retry, when an attempt does.
  ///
  /// The failure becomes `any Error`. The run is cancelled and left at once, whether it listens or
  /// not.
  ///
  /// - Parameter duration: A negative one is reported and taken as zero, one of more than a hundred
  ///   years as these.
  @_disfavoredOverload
  public func timeout(
    after duration: Duration
  ) -> ModifiedOperation<
    TransformedOperation<Self, Value, any Error>,
    TimeoutModifier<TransformedOperation<Self, Value, any Error>>
  > {
    erasingFailure().timeout(after: duration)
  }
}
