import Synchronization

/// The report of a client's shutdown: the runs that were cut off.
public struct OperationShutdown: Sendable, CustomStringConvertible {
  /// A run that was cancelled.
  public struct Run: Sendable, CustomStringConvertible {
    /// The path of its store.
    public let path: OperationPath
    /// The kind of its request.
    public let kind: OperationKind
    /// The cause of the run.
    public let cause: OperationRun.Cause

    /// The kind, the path and the cause.
    public var description: String { "\(kind.rawValue) \(path) (\(cause.rawValue))" }
  }

  /// The runs that had not ended in time, and were cancelled.
  public let cancelledRuns: [Run]
  /// Why values or calls were not saved; `nil` if all are in the storage, or there is none.
  public let saveFailure: (any Error)?

  /// A line that lists the cancelled runs.
  public var description: String {
    let runs = cancelledRuns.map(\.description).joined(separator: ", ")
    let cut = runs.isEmpty ? "shut down; no run was cancelled" : "shut down; cancelled: \(runs)"
    return saveFailure.map { "\(cut); not saved: \($0)" } ?? cut
  }
}

extension OperationClient {
  /// Ends the work of this client, such as when the process receives SIGTERM.
  ///
  /// No run is started any more: callers of a new one get `CancellationError`, where the failure of the
  /// request can be that; otherwise the request is called in a cancelled task. Runs in flight continue for
  /// `duration`, and then they are cancelled, for all their callers. Then what has changed is
  /// saved, and at last the inspector of the client and the streams of the client and its stores end, each
  /// behind what is queued for its subscribers. Calls of persisted mutations that are cut off stay in the
  /// outbox. Values can still be read and written. If a request calls this, its run is not awaited, nor are
  /// runs that await it: they are cancelled at the end. Runs of stores that were removed from the client
  /// before are neither awaited nor cancelled.
  ///
  /// A second call does the same again: it cancels what is left after its own time.
  ///
  /// - Parameter duration: The time for runs in flight, by the clock of the client. A negative duration
  ///   is reported, and zero is used. It does not limit how long the storage saves. If the calling task is
  ///   cancelled, this waits no longer for runs or for the storage.
  /// - Returns: What was cut off.
  @discardableResult
  nonisolated(nonsending) public func shutdown(within duration: Duration) async -> OperationShutdown
  {
    let duration = duration.checked(for: "The time of a shutdown")
    hub.close()
    let stores = stores(matching: [])
    let own = TaskNode.current
    let runs = stores.flatMap { $0.store.startedRuns }.filter { run in
      own.flatMap { run.route(to: $0) } == nil
    }
    await wait(for: runs, atMost: duration)
    // Before runs are cancelled, which undoes what they have yielded. A failure is that of the flush below.
    try? await hub.valueWriter?.flush()
    hub.cutOff()
    // A run that is about to start is no part of it: its callers get the same as those of a new run.
    let left = stores.flatMap { store in
      store.store.startedRuns.filter(\.progress.hasStarted).map { (store, $0) }
    }
    for (_, run) in left { run.cutOff() }
    stores.flatMap { $0.store.removeRuns() }.forEach { $0() }
    // One may have ended meanwhile.
    let cut = left.filter { _, run in run.progress.isCancelled }
    var saveFailure: (any Error)?
    do { try await flush() } catch { saveFailure = error }
    inspection.withLock { $0.take() }?.end.cancel()
    // At last: a program may end when its streams do.
    hub.closing.finish()
    return OperationShutdown(
      cancelledRuns: cut.map { store, node in
        OperationShutdown.Run(path: store.path, kind: store.store.kind, cause: node.cause)
      }, saveFailure: saveFailure)
  }

  nonisolated(nonsending) private func wait(for runs: [TaskNode], atMost duration: Duration) async {
    if runs.isEmpty || duration == .zero { return }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { for run in runs { _ = await run.wait(isCancellable: true) {} } }
      group.addTask { [clock] in _ = await clock.hasSlept(for: duration) }
      await group.next()
      group.cancelAll()
    }
  }
}
