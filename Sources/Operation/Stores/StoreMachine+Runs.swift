import ReactiveStreams

/// The runs of a store, from what they begin with to their end.
extension StoreMachine {
  /// A run goes to its request: the state puts what it begins with into its context. Tells whether
  /// the run still counts, and whether there are optimistic edits.
  func willRun(
    _ id: OperationTaskID, in context: inout OperationContext
  ) -> (isThere: Bool, hasEdits: Bool) {
    state.willRun(in: &context)
    return (runs.contains(id), !overlay.isNone)
  }

  /// A run yielded; gives what it runs with, if the yield counts.
  mutating func yield(_ id: OperationTaskID, _ output: Output) -> Box? {
    guard let record = runs[id] else { return nil }
    let handlers = record.payload.handlers
    guard !output.isCancellation else {
      tell(.yielded(output, record.run), also: handlers)
      return record.task.box
    }
    noteYield(of: id)
    takeIn(output, record)
    tell(.yielded(output, record.run), also: handlers)
    commit(for: handlers)
    return record.task.box
  }

  /// Keeps what there is before a run yields, unless what there is comes from it already.
  mutating func noteYield(of id: OperationTaskID) {
    if yields.last?.id == id { return }
    takeYield(of: id)
    let idsInFloor = overlay.isNone ? [] : overlay.content.layers.idsInFloor
    yields.append(Yield(of: id, before: base, idsInFloor: idsInFloor))
  }

  /// Takes out what a run yielded; gives it if the state shows it. What came behind it goes back to
  /// what was there before both.
  @discardableResult
  private mutating func takeYield(of id: OperationTaskID) -> Yield? {
    guard let index = yields.firstIndex(where: { $0.id == id }) else { return nil }
    let taken = yields.remove(at: index)
    guard index < yields.count else { return taken }
    release(yields[index].before)
    yields[index].before = taken.before
    yields[index].idsInFloor = taken.idsInFloor
    return nil
  }

  /// A result came that stays, so that what was there before it does not come back.
  mutating func keepYields() {
    if yields.isEmpty { return }
    release(yields)
    yields = []
  }

  /// A run ended. A value stays, and so does what a run has given that failed then; what others have
  /// yielded since can still be taken back, and the failure is there then.
  mutating func keepYields(behind output: Output, of record: Runs.Record) {
    if yields.isEmpty { return }
    guard case .failure = output else { return keepYields() }
    if let index = yields.firstIndex(where: { $0.id == record.id }) {
      release(Array(yields[...index]))
      yields.removeFirst(index + 1)
    }
    changeBeforeYields { $0.update(with: output, for: record.task) }
  }

  /// Changes what there was before the yields, too, when the tasks of the state change.
  mutating func changeBeforeYields(_ change: (inout State) -> Void) {
    for index in yields.indices {
      change(&yields[index].before)
      let driven = yields[index].before.takeReleased()
      if !driven.isEmpty { release(all: driven) }
    }
  }

  /// A run begins to wait for a connection, or goes on.
  mutating func setPaused(_ isPaused: Bool, _ id: OperationTaskID) {
    guard let payload = runs[id]?.payload else { return }
    state.setPaused(isPaused, id)
    changeBeforeYields { $0.setPaused(isPaused, id) }
    commit(for: payload.handlers)
  }

  mutating func finishTask(of record: Runs.Record) {
    state.finishFetchTask(record.task)
    if yields.isEmpty { return }
    changeBeforeYields { $0.finishFetchTask(record.task) }
  }

  private mutating func giveUpTask(of record: Runs.Record) {
    state.giveUpFetchTask(record.task)
    changeBeforeYields { $0.giveUpFetchTask(record.task) }
  }

  /// A run ended; tells whether it still counted, whether one has to follow, and whether those that
  /// have read an outdated value are to be told of a new one.
  mutating func end(
    _ id: OperationTaskID, _ output: Output
  ) -> (isCounted: Bool, mustFollow: Bool, mustTellReaders: Bool) {
    guard let record = remove(id) else {
      tellLateEnd(id, output)
      return (false, false, false)
    }
    if output.isCancellation {
      giveUp(record)
    } else {
      if holdsMore(record) { release(record) }
      keepYields(behind: output, of: record)
      takeIn(output, record)
      finishTask(of: record)
      if case .success = output { landingCount += 1 }
      if case .success = output, Self.isAboutWhole(record) {
        freshness.refresh(since: record.payload.generation)
      }
      commit(for: record.payload.handlers)
      tell(.runEnded(output, record.run), also: record.payload.handlers)
    }
    dropFollowsAfter()
    return (true, mustFollow, takeReadOutdated())
  }

  /// Whether the record of a run that ends may be the last to hold something of the user's. The run
  /// itself holds its task, and so the context, unless the task was given another one.
  func holdsMore(_ record: Runs.Record) -> Bool {
    // Not of its payload, which would be copied for the two.
    !record.payload.handlers.isEmpty || record.payload.given != nil
  }

  mutating func takeIn(_ output: Output, _ record: Runs.Record) {
    guard case .success(let value) = output else {
      return state.update(with: output, for: record.task)
    }
    land(after: record.payload.settlements, part: value as? any PartialResult) { state, _ in
      state.update(with: output, for: record.task)
    }
    if !overlay.isNone { lacksEdits = true }
  }

  /// Whether a run fetches what an invalidation is about, and not only a page more.
  static func isAboutWhole(_ record: Runs.Record) -> Bool {
    guard State.kind == .pages else { return true }
    switch record.task.context.pageRunKind {
    case .nextPage, .previousPage: return false
    case .initialPage, .allPages, .refetch: return true
    }
  }

  /// Takes out a run that is over; its record has to be released without the lock.
  mutating func remove(_ id: OperationTaskID) -> Runs.Record? {
    guard let record = runs.remove(id) else { return nil }
    retire(id)
    return record
  }

  mutating func retire(_ id: OperationTaskID) {
    if !overlay.isNone { overlay.content.layers.runEnded() }
    dropFollowsAfter()
  }

  /// Whether a run has to follow one that is over: none of the whole has begun since the last
  /// invalidation.
  var mustFollow: Bool {
    needsRerun && freshness.answered < freshness.generation
  }

  /// Somebody who waited goes; returns the run if nobody holds it any more, and whether one has to
  /// follow.
  mutating func leave(_ id: OperationTaskID) -> (core: Core?, mustFollow: Bool) {
    runs.update(id) { $0.awaiters -= 1 }
    guard let core = giveBack(id) else { return (nil, false) }
    return (core, mustFollow)
  }

  /// Takes out a run that nobody holds any more; observers, or the next ones, still wait for what it
  /// was to bring.
  mutating func giveBack(_ id: OperationTaskID) -> Core? {
    guard let payload = runs[id]?.payload, let core = releaseIfFree(id) else { return nil }
    if payload.isAnswer, payload.generation == freshness.generation { freshness.answered -= 1 }
    return core
  }

  /// A handle went away.
  mutating func dropHandle(_ id: OperationTaskID) -> Core? {
    runs.update(id) { $0.handles -= 1 }
    guard runs[id]?.isStarted == false else { return nil }
    return releaseIfFree(id)
  }

  mutating func releaseIfFree(_ id: OperationTaskID) -> Core? {
    guard let record = runs.removeIfFree(id, observerCount: deliveries.subscriberCount) else {
      return nil
    }
    retire(id)
    giveUp(record)
    return record.core
  }

  /// The run is over for everybody.
  mutating func cancel(_ id: OperationTaskID) -> Core? {
    guard let record = remove(id) else { return nil }
    giveUp(record)
    // None follows what was cancelled.
    if needsRerun { releaseFollowsAfter() }
    return record.core
  }

  mutating func cancelAll() -> [Core] {
    runs.ids.compactMap { cancel($0) }
  }

  mutating func takeAllRuns() -> [Runs.Record] {
    runs.ids.compactMap { remove($0) }
  }

  /// Puts back what was there before a run that is over.
  mutating func giveUp(_ record: Runs.Record) {
    if let yield = takeYield(of: record.id) {
      replaceState(with: yield.before)
      if !overlay.isNone {
        release(overlay.content.layers.floor)
        overlay.content.layers.restore(state.currentValue, idsInFloor: yield.idsInFloor)
        lacksEdits = true
      }
    }
    giveUpTask(of: record)
    commit(for: record.payload.handlers)
    tellCancelled(record)
    release(record)
  }

  /// Tells that a cancelled run is over: now, or when its request has ended, if its failure cannot
  /// say that it was cancelled.
  mutating func tellCancelled(_ record: Runs.Record) {
    guard record.isStarted else { return }
    if let failure = cancellationFailure(as: State.Failure.self) {
      tell(.runEnded(.failure(failure), record.run), also: record.payload.handlers)
    } else {
      unended[record.id] = record
    }
  }

  mutating func tellLateEnd(_ id: OperationTaskID, _ output: Output) {
    guard let record = unended.removeValue(forKey: id) else { return }
    release(record)
    tell(.runEnded(output, record.run), also: record.payload.handlers)
  }

  /// The runs of this store, as a snapshot tells of them.
  var snapshotRuns: [OperationClientSnapshot.Run] {
    runs.records.sorted { $0.id < $1.id }.map {
      OperationClientSnapshot.Run(
        id: $0.id.rawValue, cause: $0.core.node.cause, isStarted: $0.isStarted)
    }
  }

  /// How many hold a run of this store.
  var leaseCount: Int {
    runs.records.reduce(0) { count, record in
      count + record.awaiters + (record.isHeldByObservers ? deliveries.subscriberCount : 0)
    }
  }
}

extension Result {
  var isCancellation: Bool {
    if case .failure(let error) = self { error is CancellationError } else { false }
  }
}
