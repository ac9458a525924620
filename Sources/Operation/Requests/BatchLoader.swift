import ReactiveStreams
import Synchronization

/// Collects keys that are requested at about the same time, and loads them with one call.
///
/// ```swift
/// let users = BatchLoader<Int, User>(delay: .milliseconds(5), maxSize: 100) { ids in
///   Dictionary(uniqueKeysWithValues: try await api.users(ids).map { ($0.id, $0) })
/// }
///
/// struct UserQuery: SimpleQueryRequest, Hashable {
///   let id: Int
///   func fetch(in context: OperationContext) async throws -> User { try await users.load(id, in: context) }
/// }
/// ```
///
/// Each key keeps its own store, with its own retries and its own cancellation. A batch begins when the
/// delay after its first key is over, or when it is full. One batch is loaded after the other. Keys
/// that do not fit into a batch are in the next ones, and begin no new delay. A key that is requested
/// while it is being loaded is loaded again, in a later batch. A batch is cancelled when the last
/// caller that waits for it is.
///
/// A loader belongs to no client: all callers of one loader share its batches and values. With several clients,
/// make it a member of a service that each of them has in its context.
public final class BatchLoader<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private typealias Waiter = CheckedContinuation<Result<Value, any Error>, Never>
  private typealias Machine = BatchMachine<Key, Waiter>

  /// The lock guards the machine. The function is called, and callers are resumed, without it.
  private let machine: Mutex<Machine>
  private let delay: Duration
  private let load: @Sendable ([Key]) async throws -> [Key: Result<Value, any Error>]
  /// What all callers wait for, and what the tasks of batches work for: a batch that awaits one of its callers,
  /// or that of a later batch, is found as a cycle.
  private let batches = TaskNode(path: ["batch of \(Key.self)"])

  /// Creates a loader whose function returns a value or a failure for each key.
  ///
  /// - Parameters:
  ///   - delay: The time in which keys are collected, by the clock of the first key's context. A
  ///     negative duration is reported, and zero is used. With zero a batch has the keys that
  ///     come before its task starts.
  ///   - maxSize: The greatest number of keys of a batch. A number below one is reported, and one is used.
  ///   - load: Loads the values of different keys, in the order of their requests. It is called on no
  ///     actor, with no lock held. If it throws, all keys of the batch fail with that error.
  @_disfavoredOverload  // A closure with an open type, such as `{ _ in [:] }`, is one for values.
  public init(
    delay: Duration, maxSize: Int,
    results load: @escaping @Sendable ([Key]) async throws -> [Key: Result<Value, any Error>]
  ) {
    self.delay = delay.checked(for: "The delay of a batch of \(Key.self)")
    machine = Mutex(
      Machine(maxSize: maxSize.checkedLimit(for: "The size of a batch of \(Key.self)")))
    self.load = load
  }

  /// Creates a loader whose function returns the values by key. A key without a value fails with
  /// ``BatchLoaderError``.
  ///
  /// - Parameters:
  ///   - delay: The time in which keys are collected, by the clock of the first key's context. A
  ///     negative duration is reported, and zero is used. With zero a batch has the keys that
  ///     come before its task starts.
  ///   - maxSize: The greatest number of keys of a batch. A number below one is reported, and one
  ///     is used.
  ///   - load: Loads the values of different keys, in the order of their requests. It is called on
  ///     no actor, with no lock held. If it throws, all keys of the batch fail with that error.
  public convenience init(
    delay: Duration, maxSize: Int,
    _ load: @escaping @Sendable ([Key]) async throws -> [Key: Value]
  ) {
    self.init(
      delay: delay, maxSize: maxSize, results: { try await load($0).mapValues { .success($0) } })
  }

  /// Returns the value of a key, which is loaded with others.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - context: The context of the run. Its clock measures the delay.
  /// - Throws: The failure of the key or of its batch, or `CancellationError` as soon as the calling task is
  ///   cancelled. ``BatchLoaderError`` if the function returned nothing for the key, or if the key is not
  ///   equal to itself, which is also reported. ``OperationDependencyError`` if the batch in flight awaits this
  ///   call.
  nonisolated(nonsending) public func load(
    _ key: Key, in context: OperationContext = OperationContext()
  ) async throws -> Value {
    try Task.checkCancellation()
    if key != key {
      OperationIssue.report(
        .unequalIdentity,
        "The key \(key) of a batch is not equal to itself, so that no value can be found for it.")
      throw BatchLoaderError(key: "\(key)")
    }
    let wait = RunWait(for: batches)
    defer { wait?.end() }
    if let cycle = wait?.cycle { throw cycle }
    let id = OperationTaskID.next()
    let clock = context.operationClock
    return try await withTaskCancellationHandler {
      await withCheckedContinuation { waiter in
        perform(change { $0.add(key, id, waiter) }, clock: clock)
        // The handler may have been called before the key was added.
        if Task.isCancelled { cancel(id, of: key) }
      }
    } onCancel: {
      cancel(id, of: key)
    }.get()
  }

  /// Performs a transition, and cancels the delay if no key waits any more.
  private func change<Output: Sendable>(_ transition: (inout Machine) -> Output) -> Output {
    let (output, timer) = machine.withLock { (transition(&$0), $0.takeTimer()) }
    timer?.cancel()
    return output
  }

  private func cancel(_ id: OperationTaskID, of key: Key) {
    let (waiter, abandoned, released) = change { $0.cancel(id, of: key) }
    waiter?.resume(returning: .failure(CancellationError()))
    abandoned?.cancel()
    withExtendedLifetime(released) {}
  }

  private func perform(_ action: Machine.Action, clock: any OperationClock) {
    switch action {
    case .none: break
    case .startDelay(let timer):
      let sleep = begin(on: clock) { [self] in
        if await clock.hasSlept(for: delay) {
          perform(change { $0.delayIsOver(timer) }, clock: clock)
        }
      }
      timer.set(OperationSubscription { sleep.cancel() })
    case .load(let keys, let number):
      let task = begin(on: clock) { [self] in await loadBatch(keys, clock: clock) }
      if machine.withLock({ $0.setTask(task, of: number) }) { task.cancel() }
    }
  }

  /// Starts a task that does not work for the run of the caller.
  private func begin(
    on clock: any OperationClock, _ work: @escaping @Sendable () async -> Void
  ) -> Task<Void, Never> {
    CurrentWork.without { Task(executorPreference: clock.executor) { await work() } }
  }

  private func loadBatch(_ keys: [Key], clock: any OperationClock) async {
    var results: [Key: Result<Value, any Error>] = [:]
    var failure: (any Error)?
    batches.beginRequest()
    do {
      results = try await CurrentWork.$value.withValue(batches) { try await load(keys) }
      reportSurplus(in: results, for: keys)
    } catch {
      failure = error
    }
    batches.endRequest()
    let (entries, next) = change { $0.end() }
    perform(next, clock: clock)
    for entry in entries {
      let missing = failure ?? BatchLoaderError(key: "\(entry.id)")
      let result = results[entry.id] ?? .failure(missing)
      for waiter in entry.waiters.elements { waiter.resume(returning: result) }
    }
  }

  private func reportSurplus(in results: [Key: Result<Value, any Error>], for keys: [Key]) {
    guard results.count > 0, let surplus = Set(results.keys).subtracting(keys).first else { return }
    OperationIssue.report(
      .invalidValue,
      """
      A batch of \(Key.self) returned a value for \(surplus), which it was not asked for; the value \
      is dropped.
      """)
  }
}

/// An error of a batch that returned neither a value nor a failure for a key.
public struct BatchLoaderError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The key as text.
  public let key: String

  /// A sentence that names the key.
  public var description: String { "The batch returned nothing for the key \(key)." }
}
