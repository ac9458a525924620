import FoundationEssentials

/// How the calls of a persisted mutation are kept in the outbox of the client while they run.
extension OperationStore {
  /// The place of a new call among those of the outbox; `nil` if the call is not saved.
  func ticket(in context: OperationContext) -> Int? {
    guard let outbox = hub.outbox, State.kind == .mutation,
      context.settings.values.persistence != nil, context.input?.savedCall == nil
    else { return nil }
    return outbox.nextTicket()
  }

  /// Ends the ticket of a call that is not made.
  func end(_ ticket: Int?) { if let ticket { hub.outbox?.end(ticket: ticket) } }

  /// Returns the call of a run in the outbox, when it is in the storage; `nil` if it is not saved.
  func call(of run: AdmittedRun, _ ticket: Int?) async -> OutboxEntry? {
    guard let outbox = hub.outbox, State.kind == .mutation else { return nil }
    let id = run.core.id
    // A run that is launched again makes the same call once more.
    if run.launch > 0 {
      let entry = outbox.entry(of: id)
      if let entry { outbox.noteAttempt(of: entry) }
      return entry
    }
    // Without the run: the outbox releases this under its lock.
    let own = OutboxMachine.Run(id: id) { [weak self] in self?.cancel(id) }
    if let resumed = run.context.input?.savedCall as? ResumedCall {
      // It was discarded, or resumed once more, since the run was started.
      if !outbox.begin(resumed, own) { cancel(id) }
      return resumed.entry
    }
    guard let ticket else { return nil }
    guard let call = newCall(in: run.context) else {
      outbox.end(ticket: ticket)
      return nil
    }
    let entry = await outbox.enter(call, ticket: ticket, own)
    // One that was cancelled meanwhile is removed before a flush that waits for it saves it.
    _ = await keeping(entry, of: run) {
      await outbox.save(ticket: ticket)
      return false
    }
    return entry
  }

  private func newCall(in context: OperationContext) -> OutboxCall? {
    guard let settings = context.settings.values.persistence,
      let coding = settings.coding as? any ErasedStorageCoding, let input = context.input
    else { return nil }
    guard let mutation = settings.name ?? StorageKey.description(of: path) else {
      reportUnsaved(
        "an element of the path has no form that is the same in every process; name it with `as:`")
      return nil
    }
    do {
      return OutboxCall(
        id: UUID().uuidString, mutation: mutation, arguments: try coding.encode(any: input.value),
        version: settings.version, date: context.now(), attempts: 1, status: .running)
    } catch {
      reportUnsaved("its arguments cannot be encoded: \(error)")
      return nil
    }
  }

  private func reportUnsaved(_ reason: String) {
    OperationIssue.report(
      .unsavedValue, "A call of \(path) is not saved, and is lost if the program ends: \(reason).")
  }

  /// Performs a part of a run. When the run is cancelled, or was before, its call is removed from the outbox,
  /// unless a shutdown cuts the run off: then the call waits there, once the run is over.
  ///
  /// - Parameter body: Returns whether the run is over after this part.
  /// - Returns: The same.
  func keeping(
    _ call: OutboxEntry?, of run: AdmittedRun, _ body: () async -> Bool
  ) async -> Bool {
    guard let call, let outbox = hub.outbox else { return await body() }
    let isResumed = run.context.input?.savedCall != nil
    // A launch that is replaced is not cancelled. A resumed call that a shutdown cancels at once stays, too:
    // no caller awaits it.
    let remove = { @Sendable [hub] in
      let mustStay = run.core.node.isCutOff || (isResumed && hub.isClosed)
      if run.core.progress.isCancelled, !mustStay { outbox.remove(call, by: run.core.id) }
    }
    // At once, as a request may return long after its run was cancelled.
    let isOver = await withTaskCancellationHandler(operation: body, onCancel: remove)
    if isOver, run.core.progress.isCancelled {
      // The task may have been cancelled before its run.
      remove()
      outbox.suspend(call, as: .waiting, by: run.core.id)
    }
    return isOver
  }

  /// Returns the saved call of a run, for its request. When the run ends, the call leaves the outbox, except for
  /// a resumed call that has failed.
  func runCall(of entry: OutboxEntry?, for run: AdmittedRun) -> RunCall? {
    guard let entry, let outbox = hub.outbox, let call = outbox.call(of: entry) else { return nil }
    let (isResumed, id) = (run.context.input?.savedCall != nil, run.core.id)
    return RunCall(id: call.id, earlierAttempts: call.attempts - 1) {
      outbox.noteAttempt(of: entry)
    } didEnd: { failure in
      if isResumed, let failure {
        outbox.suspend(entry, as: .failed("\(failure)"), by: id)
      } else {
        outbox.remove(entry, by: id)
      }
    }
  }

  /// Makes a saved call again, unless it was discarded, has ended, or was resumed once more.
  nonisolated(nonsending) func resume<Arguments, Value, Failure>(
    _ call: ResumedCall, with arguments: Arguments
  ) async throws -> Value where State == MutationState<Arguments, Value, Failure> {
    // Before there is a run: one whose failure cannot be a cancellation would call its request.
    guard hub.outbox?.isCurrent(call) == true else { throw CancellationError() }
    return try await run(.empty, input: RunArguments(arguments, savedCall: call))
  }
}
