import ReactiveStreams

/// The transitions of runs in flight, from the call of the request to the end.
extension StoreMachine {
  /// A run calls its request: the state writes what the run begins with into its context. Returns
  /// whether the run is still in the store, and whether ``begin(_:launch:in:)`` has something to note.
  func willRun(
    _ id: OperationTaskID, in context: inout OperationContext
  ) -> (isPresent: Bool, mustBegin: Bool) {
    state.willRun(in: &context)
    return (runs.contains(id), !edits.isPlain || isForOtherPages(id, in: context))
  }

  /// Whether a run fetches other pages than it was scheduled for, because there is none any more.
  func isForOtherPages(_ id: OperationTaskID, in context: OperationContext) -> Bool {
    if State.kind != .pages { return false }
    return runs[id].map { $0.task.context.pageRunKind != context.pageRunKind } ?? false
  }

  /// Whether a later launch of the run has replaced this one. Cancelled runs are known here only if the
  /// end of their request is awaited.
  func isReplaced(_ id: OperationTaskID, launch: Int) -> Bool {
    (runs[id] ?? cancelledRuns[id]).map { $0.payload.launch != launch } ?? false
  }

  /// Begins a run again: what it has yielded is undone, and it counts as started now. Returns its
  /// configuration and its launch, if it is in flight.
  mutating func restart(_ id: OperationTaskID) -> (box: Box, launch: Int)? {
    guard var record = runs[id], record.isStarted else { return nil }
    restoreYields(of: id)
    record.payload.launch += 1
    withdrawAnswer(of: record.payload)
    countStart(of: &record)
    runs.update(id) { $0 = record }
    committed.changeAll {
      $0.setPaused(false, id)
      if State.kind == .pages { $0.startFetchTask(record.task) }
    }
    setRetry(nil, id, launch: record.payload.launch)
    notifyChange(also: record.payload.handlers)
    return (record.task.box, record.payload.launch)
  }

  /// A run yielded. Returns the configuration of the run, if the run is still in the store.
  mutating func yield(_ id: OperationTaskID, launch: Int = 0, _ output: Output) -> Box? {
    guard let record = runs[id], record.payload.launch == launch else { return nil }
    let handlers = record.payload.handlers
    if !output.isCancellation {
      let isValue = if case .success = output { true } else { false }
      let count = record.payload.invalidationCount
      let isOutdated = isValue && Self.isAboutWhole(record) && count < freshness.invalidationCount
      let redo = redo(output, of: record)
      if display(of: id) == nil {
        committed.changeYields(redo)
      } else {
        committed.beginYield(
          .init(
            id: id, before: edits.withBaseValue(state), idsInBase: edits.layers?.idsInBase ?? [],
            redo: redo, isValue: isValue,
            madeStaleAt: isOutdated && !freshness.isInvalidated ? freshness.invalidationCount : nil)
        )
      }
      take(output, of: record.task, after: record.payload.settlements)
      // As at its end; a run that is no older than the last invalidation makes the value fresh only then.
      if isOutdated { freshness.refresh(since: count) }
      notifyChange(also: handlers)
    }
    notify(.yielded(output, record.run), also: handlers)
    return record.task.box
  }

  /// A run ended. Returns whether it was still in the store, whether another run has to follow, and
  /// whether requests that read a stale value are notified of the new one.
  ///
  /// - Parameter ended: Its record, to be released without the lock.
  mutating func end(
    _ id: OperationTaskID, _ output: Output, releasing ended: inout Runs.Record?
  ) -> (isCounted: Bool, mustFollow: Bool, mustNotifyReaders: Bool) {
    guard let record = remove(id) else {
      notifyLateEnd(id, output)
      return (false, false, false)
    }
    if output.isCancellation {
      giveUp(record)
    } else {
      confirmYields(output, of: record)
      take(output, of: record.task, after: record.payload.settlements, isFinal: true)
      if case .success = output {
        committed.noteResult()
        if Self.isAboutWhole(record) { freshness.refresh(since: record.payload.invalidationCount) }
      } else if Self.isAboutWhole(record),
        record.payload.invalidationCount == freshness.invalidationCount
      {
        // No run follows one that began after the invalidation, also if an older run has replaced an answer.
        _ = freshness.answer()
      }
      notifyChange(also: record.payload.handlers)
      notify(.runEnded(output, record.run), also: record.payload.handlers)
    }
    dropFollowUp()
    ended = record
    return (true, mustFollow, takeReadStale())
  }

  private mutating func take(
    _ output: Output, of task: Task, after settlements: Int, isFinal: Bool = false
  ) {
    func update(_ state: inout State) {
      state.update(with: output, for: task)
      if isFinal { state.finishFetchTask(task) }
    }
    if case .success(let value) = output {
      let part = State.kind == .pages ? value as? any PartialResult : nil
      land(after: settlements, part: part, update)
      edits.noteMissingEdits()
    } else {
      committed.change(update)
    }
    if isFinal, !committed.yields.isEmpty { committed.changeYields { $0.finishFetchTask(task) } }
  }

  /// A final whole value confirms all yields; any other result confirms those of its run.
  private mutating func confirmYields(_ output: Output, of record: Runs.Record) {
    // The result of a call is displayed only if no later one is in flight, which may have yielded.
    if case .success = output, State.kind != .mutation, Self.isAboutWhole(record) {
      return committed.confirmYields()
    }
    if committed.yields.isEmpty { return }
    committed.confirmYields(of: record.id, redo(output, of: record))
  }

  /// Returns what adds a result to a state, with the date of now.
  private func redo(_ output: Output, of record: Runs.Record) -> YieldedResult<State>.Redo {
    { [task = record.task.dated(display: display(of: record.id))] in
      $0.update(with: output, for: task)
    }
  }

  /// Returns a number for a result of a run that is displayed now; `nil` if a later call covers it.
  private func display(of id: OperationTaskID) -> Int? {
    guard State.kind == .mutation, let state = state as? any CallState else { return 0 }
    return state.display(of: id)
  }

  /// Returns whether a run fetches the whole value, and not only a further page.
  static func isAboutWhole(_ record: Runs.Record) -> Bool {
    let kind = record.payload.begunKind ?? record.task.context.pageRunKind
    return State.kind != .pages || !kind.isForFurtherPage
  }

  /// A run begins to wait for a retry, or the attempt begins.
  mutating func setRetry(
    _ retry: OperationRetry<State.Failure>?, _ id: OperationTaskID, launch: Int = 0
  ) {
    guard let payload = runs[id]?.payload, payload.launch == launch,
      retry != nil || payload.retry != nil
    else { return }
    if let old = payload.retry { release(old) }
    runs.update(id) { $0.payload.retry = retry }
    committed.changeAll { $0.setRetry(retry, id) }
    notifyChange(also: payload.handlers)
  }

  /// A run begins to wait for a connection, or continues.
  mutating func setPaused(_ isPaused: Bool, _ id: OperationTaskID, launch: Int = 0) {
    guard let payload = runs[id]?.payload, payload.launch == launch else { return }
    committed.changeAll { $0.setPaused(isPaused, id) }
    notifyChange(also: payload.handlers)
  }
}

// MARK: - Leases and cancellation

extension StoreMachine {
  /// Releases the lease of an awaiter. Returns the run if it is not held any more, and whether another
  /// one has to follow.
  mutating func releaseLease(on id: OperationTaskID) -> (core: Core?, mustFollow: Bool) {
    runs.update(id) { $0.awaiters -= 1 }
    guard let core = removeIfFree(id) else { return (nil, false) }
    return (core, mustFollow)
  }

  /// Removes a handler of a run.
  mutating func release(_ handler: Subscriber<Event>, of id: OperationTaskID) {
    runs.update(id) { $0.payload.handlers.removeAll { $0 === handler } }
    release(handler)
  }

  /// Releases a handle. Returns the run if it was not started and is not held any more.
  mutating func dropHandle(_ id: OperationTaskID) -> Core? {
    runs.update(id) { $0.handles -= 1 }
    guard runs[id]?.isStarted == false else { return nil }
    return removeIfFree(id)
  }

  /// Releases the lease of the observers on all runs. Returns the runs that are not held any more.
  mutating func releaseObserverLeases() -> [Core] {
    if runs.isEmpty { return [] }
    let held = runs.ids.filter { runs[$0]?.isHeldByObservers == true }
    return held.compactMap { id in
      runs.update(id) { $0.isHeldByObservers = false }
      return removeIfFree(id)
    }
  }

  /// Cancels a run for all callers.
  mutating func cancel(_ id: OperationTaskID) -> Core? {
    guard let record = remove(id) else { return nil }
    giveUp(record)
    // No run follows one that was cancelled.
    if needsRerun { releaseFollowUp() }
    return record.core
  }

  mutating func cancelAll() -> [Core] { runs.ids.compactMap { cancel($0) } }

  /// The number of leases on runs of this store.
  var leaseCount: Int {
    runs.leaseCount(observerCount: deliveries.subscriberCount)
  }

  /// Lets another run, or the same one again, answer the last invalidation, if it was this run's to answer.
  private mutating func withdrawAnswer(of payload: RunPayload) {
    if payload.isAnswer, payload.invalidationCount == freshness.invalidationCount {
      freshness.withdrawAnswer()
    }
  }

  /// Removes a run that is not held. If it was to answer an invalidation, another one may.
  private mutating func removeIfFree(_ id: OperationTaskID) -> Core? {
    guard let record = runs.removeIfFree(id, observerCount: deliveries.subscriberCount) else {
      return nil
    }
    noteRemoval()
    giveUp(record)
    withdrawAnswer(of: record.payload)
    return record.core
  }

  /// Removes a run that has ended. Its record is released without the lock.
  mutating func remove(_ id: OperationTaskID) -> Runs.Record? {
    guard let record = runs.remove(id) else { return nil }
    noteRemoval()
    return record
  }

  private mutating func noteRemoval() {
    if !edits.isPlain { edits.edited?.layers.runEnded() }
    dropFollowUp()
  }

  /// Restores what a run had replaced, and removes its task from the state.
  private mutating func giveUp(_ record: Runs.Record) {
    restoreYields(of: record.id)
    committed.changeAll { $0.giveUpFetchTask(record.task) }
    notifyChange(also: record.payload.handlers)
    notifyCancelled(record)
    release(record)
  }

  /// Restores what the yields of a run had replaced.
  private mutating func restoreYields(of id: OperationTaskID) {
    guard let entry = committed.undoYield(of: id) else { return }
    if entry.madeStaleAt == freshness.invalidationCount {
      freshness.restore()
      dropFollowUp()
    }
    release(edits.layers?.base)
    let value = state.currentValue
    edits.edited?.layers.restore(value, idsInBase: entry.idsInBase)
    edits.noteMissingEdits()
  }

  /// Notifies the end of a cancelled run: now, or when its request returns, if its failure cannot be a
  /// cancellation.
  mutating func notifyCancelled(_ record: Runs.Record) {
    guard record.isStarted else { return }
    if let failure = cancellationFailure(as: State.Failure.self) {
      notify(.runEnded(.failure(failure), record.run), also: record.payload.handlers)
    } else {
      cancelledRuns[record.id] = record
    }
  }

  private mutating func notifyLateEnd(_ id: OperationTaskID, _ output: Output) {
    guard let record = cancelledRuns.removeValue(forKey: id) else { return }
    release(record)
    notify(.runEnded(output, record.run), also: record.payload.handlers)
  }
}
