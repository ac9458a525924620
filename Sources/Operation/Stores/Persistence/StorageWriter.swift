import ReactiveStreams
import Synchronization

/// Writes what has changed into the storage of a client, in batches, from tasks of its own.
///
/// The lock guards the machine. Items, the storage and waiting tasks are called without it.
final class StorageWriter: Sendable {
  let storage: any OperationStorage
  private let clock: any OperationClock
  private let machine: Mutex<StorageWriterMachine>
  /// Notifies waiting tasks of the end of each batch.
  private let ends = Broadcast<Void>()
  /// The entries that are being set aside, for which a batch waits.
  private let settingAside = Mutex<[String: OneShot<Bool>]>([:])
  private let lastFailure = LastElement<any Error>()
  /// The paths of the values that have names of their own, and how many stores save under each.
  private let namedPaths = Mutex<[String: (path: OperationPath, count: Int)]>([:])

  /// - Parameter delay: How long changes are collected.
  init(_ storage: any OperationStorage, clock: any OperationClock, delay: Duration) {
    self.storage = storage
    self.clock = clock
    machine = Mutex(StorageWriterMachine(delay: delay))
  }

  /// Takes a name for a path, until it is released as often. Returns the path that has it, which is another
  /// one if the name is taken.
  func takeName(_ key: String, for path: OperationPath) -> OperationPath {
    namedPaths.withLock { paths in
      let first = paths[key]?.path ?? path
      if first == path { paths[key, default: (path, 0)].count += 1 }
      return first
    }
  }

  func releaseName(_ key: String) {
    let old = namedPaths.withLock { paths in
      paths[key]?.count -= 1
      return paths[key]?.count == 0 ? paths.removeValue(forKey: key)?.path : nil
    }
    withExtendedLifetime(old) {}
  }

  /// Notes that an item has changed.
  func note(_ item: SavedItem) { start(machine.withLock { $0.note(item) }.delay) }

  /// Removes the entry of a key, or also those below it.
  func remove(_ key: String, isPrefix: Bool = false) {
    start(machine.withLock { $0.remove(key, isPrefix: isPrefix) }.delay)
  }

  /// Returns the entry under a key, when pending changes of other owners of that key are written.
  nonisolated(nonsending) func load(
    _ key: String, for owner: ObjectIdentifier
  ) async throws -> StorageEntry? {
    if machine.withLock({ $0.isPending(key, besides: owner) }) { try? await flush() }
    if machine.withLock({ $0.isRemoved(key) }) { return nil }
    return try await storage.load(key)
  }

  /// Whether a change under a key is not in the storage yet.
  func isPending(_ key: String) -> Bool { machine.withLock { $0.isPending(key, besides: nil) } }

  /// Sets an entry aside if a condition holds. Returns whether it did. A batch that changes the entry waits for the
  /// end, or has taken its change before the condition is asked.
  nonisolated(nonsending) func setAside(_ key: String, if isWanted: () -> Bool) async -> Bool {
    let end = OneShot<Bool>()
    settingAside.withLock { $0[key] = end }
    defer {
      settingAside.withLock { $0[key] = nil }
      end.finish(true)
    }
    return isWanted() ? (try? await storage.setAside(key)) != nil : false
  }

  /// Waits until all that has changed is in the storage.
  ///
  /// - Throws: What the storage has thrown for it, or `CancellationError` if the task is cancelled.
  nonisolated(nonsending) func flush() async throws {
    let (count, round, batch) = machine.withLock { ($0.changeCount, $0.roundCount, $0.flush()) }
    if let batch { write(batch) }
    let outcome = { @Sendable [weak self] in
      self?.machine.withLock { $0.outcome(of: count, since: round) }
    }
    _ = await wait {
      outcome() != nil
    } changes: { [ends] notify in
      ends.subscribe { notify() }
    }
    guard let end = outcome() else { throw CancellationError() }
    if end == .failed { throw lastFailure.value ?? CancellationError() }
  }

  /// Writes what has changed, and each later change at once: no caller can flush any more.
  func close() { if let batch = machine.withLock({ $0.flush(isLast: true) }) { write(batch) } }

  private func start(_ delay: Duration?) {
    guard let delay else { return }
    if delay == .zero { return wake() }
    // The closure retains the writer until it has written.
    let timer = clock.schedule(after: delay) { [self] in wake() }
    machine.withLock { $0.addTimer(timer) }?.cancel()
  }

  private func wake() { if let batch = machine.withLock({ $0.timerEnded() }) { write(batch) } }

  private func write(_ batch: StorageWriterMachine.Batch) {
    // A caller that flushes may open the directory of the storage once more when it continues. Nothing here may
    // retain the storage then.
    let kept = LastElement((writer: self, batch: batch))
    // No detached task: it makes its reports to the handler of the caller.
    Task(executorPreference: clock.executor) { [ends] in
      if let (writer, batch) = kept.take() { await writer.finish(batch) }
      ends.send(())
    }
  }

  private func finish(_ batch: StorageWriterMachine.Batch) async {
    var isSuccess = true
    do { try await perform(batch) } catch StorageError.readOnly {
      // The program has asked for that, so nothing is to be saved.
    } catch {
      isSuccess = false
      lastFailure.set(error)
      // The first failure since a success, before a caller that flushes gets it.
      if !batch.followsFailure { report(error) }
    }
    let delay = machine.withLock { $0.end(batch, isSuccess: isSuccess) }
    start(delay)
  }

  private func perform(_ batch: StorageWriterMachine.Batch) async throws {
    var (entries, removed) = ([String: StorageEntry](), Array(batch.changes.removedKeys))
    var changes: [(key: String, SavedChange)] = []
    for item in batch.changes.items {
      guard let change = item.takeChange() else { continue }
      if let entry = change.entry { entries[item.key] = entry } else { removed.append(item.key) }
      changes.append((item.key, change))
    }
    // A key that the storage refuses keeps no other from being removed or saved.
    var failures: [String: any Error] = [:]
    for prefix in batch.changes.removedPrefixes {
      do {
        removed += try await storage.readableKeys(
          withPrefix: prefix, reporting: "A value that is to be removed cannot be read"
        ).filter { StorageKey.isKey($0, below: prefix) }
      } catch { failures[prefix] = error }
    }
    for key in removed + entries.keys { _ = await settingAside.withLock { $0[key] }?.wait() }
    let isSplit = batch.followsFailure
    for part in isSplit ? removed.map({ [$0] }) : [removed] where !part.isEmpty {
      do { try await storage.remove(part) } catch { for key in part { failures[key] = error } }
    }
    let parts = isSplit ? entries.map { [$0.key: $0.value] } : [entries]
    for part in parts where !part.isEmpty {
      do { try await storage.save(part) } catch { for key in part.keys { failures[key] = error } }
    }
    // A failed batch makes its removals again, and what is saved below them must be saved again, too.
    for (key, change) in changes where failures[key] == nil {
      if failures.isEmpty || !batch.changes.removes(key) { change.didSave() }
    }
    if let failure = failures.values.first { throw failure }
  }

  private func report(_ failure: any Error) {
    OperationIssue.report(
      .storageFailure,
      """
      What has changed was not saved: \(failure) It is tried again, with longer and longer waits of up \
      to 30 s, until it succeeds.
      """)
  }
}
