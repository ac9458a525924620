import FoundationEssentials
import ReactiveStreams
import Synchronization

/// Saves the value of a store, and restores it when the store is created.
///
/// The lock guards whether the value was loaded, and what is in the storage. Encodings, the storage, and
/// waiting tasks are called without it.
final class StorePersistence<State: OperationState>: Sendable {
  private struct Facts: Sendable {
    /// The actions that follow when the saved value was loaded; `nil` once it was.
    var actions: [@Sendable () -> Void]? = []
    /// The mark of the value in the storage; `nil` while the store has saved and restored nothing.
    var saved: [Int]?
    /// Whether changes are not saved: the store was removed from the client, or is not the first one on
    /// its path.
    var isEnded = false
    /// Releases the name of the value, if it has one of its own.
    var name = OperationSubscription.empty
  }

  let key: String
  private let settings: PersistenceSettings
  private let form: SavedForm<State>
  private let writer: StorageWriter
  private let facts = Mutex(Facts())

  /// Fails if the value on the path is not to be saved, and, after a report, if it cannot be.
  init?(at path: OperationPath, _ settings: PersistenceSettings, _ writer: StorageWriter?) {
    guard let writer, State.kind != .mutation else { return nil }
    guard let form = SavedForm<State>(coding: settings.coding) else {
      Self.reportUnsaved(path, "its state, \(State.self), has no value that can be encoded")
      return nil
    }
    guard let key = settings.name.map(StorageKey.value(named:)) ?? StorageKey.value(at: path) else {
      Self.reportUnsaved(
        path,
        "an element of the path has no form that is the same in every process; name it with `as:`")
      return nil
    }
    if let name = settings.name {
      let first = writer.takeName(key, for: path)
      if first != path {
        Self.reportUnsaved(path, "\(first) is saved under the same name, \(name)")
        return nil
      }
      facts.withLock { $0.name = OperationSubscription { writer.releaseName(key) } }
    }
    self.key = key
    self.settings = settings
    self.form = form
    self.writer = writer
  }

  private static func reportUnsaved(_ path: OperationPath, _ reason: String) {
    OperationIssue.report(.unsavedValue, "The value of \(path) is not saved: \(reason).")
  }

  func begin(_ state: inout State) { form.setRestoring(&state, true) }

  /// Calls an action when the value was loaded. Returns `false`, and does not call it, if that was before.
  func whenLoaded(_ action: @escaping @Sendable () -> Void) -> Bool {
    facts.withLock { facts in
      facts.actions?.append(action)
      return facts.actions != nil
    }
  }

  /// Waits until the value was loaded, or the task is cancelled.
  nonisolated(nonsending) func waitUntilLoaded() async {
    let shot = OneShot<Bool>()
    if whenLoaded({ shot.finish(true) }) { _ = await shot.wait() }
  }

  /// Notes that the store may have changed.
  func noteChange(of store: OperationStore<State>) {
    if facts.withLock({ $0.isEnded }) { return }
    // The item retains the store until its change is saved.
    writer.note(
      SavedItem(key: key, owner: ObjectIdentifier(self)) { [self] in takeChange(of: store) })
  }

  /// Saves nothing from now on. Another path can have the name of the value then.
  ///
  /// - Parameter isForgotten: Whether what was saved is removed.
  func end(forgetting isForgotten: Bool) {
    let (hasEnded, name) = facts.withLock { (exchange(&$0.isEnded, with: true), $0.name) }
    if isForgotten, !hasEnded { writer.remove(key) }
    name.cancel()
  }
}

// MARK: - Restoring

extension StorePersistence {
  /// Loads the saved value, and displays it if nothing newer has come.
  func restore(into store: OperationStore<State>) {
    if facts.withLock({ $0.isEnded }) { return finish(store, nil) }
    // No detached task: it makes its reports to the handler of the caller.
    Task(executorPreference: store.context.executor) { [self] in
      var restored: SavedForm<State>.Restoration?
      var isInvalidated = false
      do {
        if let entry = try await writer.load(key, for: ObjectIdentifier(self)) {
          restored = await decode(entry, in: store.context)
          isInvalidated = entry.isInvalidated
        }
      } catch {
        let isAboutEntry = (error as? StorageError)?.isAboutEntry == true
        report(isAboutEntry ? .unreadableEntry : .storageFailure, "was not loaded", because: error)
      }
      finish(store, restored, isInvalidated: isInvalidated)
    }
  }

  private func finish(
    _ store: OperationStore<State>, _ restored: SavedForm<State>.Restoration?,
    isInvalidated: Bool = false
  ) {
    let mark = store.commit { [form] in
      $0.finishRestoring(form, restored, isInvalidated: isInvalidated)
    }
    let actions = facts.withLock { facts in
      // A migrated value is saved again when it changes.
      if let mark { facts.saved = mark }
      return facts.actions.take() ?? []
    }
    for action in actions { action() }
  }

  /// Decodes an entry, or drops it. One that cannot be decoded is set aside, and reported.
  private func decode(
    _ entry: StorageEntry, in context: OperationContext
  ) async -> SavedForm<State>.Restoration? {
    let age = context.now().duration(since: entry.date)
    do {
      let isTooOld = settings.maxAge.map { age >= $0 } ?? false
      let restored = isTooOld ? nil : try form.decode(entry, settings.version, context)
      // The next batch replaces the entry by the store's value, or removes it if there is none. A
      // removal here could remove what was saved since the entry was loaded.
      if restored == nil { facts.withLock { $0.saved = $0.saved ?? Self.unusable } }
      return restored
    } catch {
      // Unless a newer value replaces it: one that was saved or is being saved, also by a store that has
      // followed this one on its path. A storage that is only read, or that cannot do it, keeps the entry.
      let isSetAside = await writer.setAside(key) {
        facts.withLock { !$0.isEnded && $0.saved == nil }
      }
      // The removal of the store has removed the entry.
      if !isSetAside, facts.withLock({ $0.isEnded }) { return nil }
      report(
        .unreadableEntry, isSetAside ? "was set aside" : "cannot be decoded", because: error)
      return nil
    }
  }

  private func report(_ kind: OperationIssue.Kind, _ event: String, because error: any Error) {
    OperationIssue.report(kind, "What is saved as \(key) \(event): \(error)")
  }
}

// MARK: - Saving

extension StorePersistence {
  /// The mark of an entry that is to be replaced or removed.
  private static var unusable: [Int] { [-1] }
  /// The mark of what may have been written, or not.
  private static var beingSaved: [Int] { [-2] }

  private func takeChange(of store: OperationStore<State>) -> SavedChange? {
    let (saved, isEnded, isLoaded) = facts.withLock { ($0.saved, $0.isEnded, $0.actions == nil) }
    // The confirmed state, after the exclusive access of a thread.
    let (state, date, mark, isInvalidated) = store.commit(as: .silent) {
      ($0.state, $0.visibleDate, $0.savedMark, $0.freshness.isInvalidated)
    }
    // A yield that was undone is no change. Until the saved value was loaded, no yield is one.
    let isUnchanged = mark.prefix(isLoaded ? 3 : 2).allSatisfy { $0 == 0 }
    if isEnded || mark == saved || (saved == nil && isUnchanged) { return nil }
    // A shutdown that cuts a run off undoes its yields. The storage keeps the yielded value, the newest one. An
    // invalidation of a value that has not changed is saved even then.
    let hasSameValue = saved?.prefix(4) == mark.prefix(4)
    if store.hub.isCutOff, saved?.prefix(2) == mark.prefix(2), !hasSameValue { return nil }
    do {
      let data = try form.encode(state)
      // An edit of a missing value has succeeded. What is saved there could not be loaded, and stays.
      if data == nil, saved == nil, mark[0] == 0 { return nil }
      // A save that fails may have written.
      facts.withLock { $0.saved = Self.beingSaved }
      let entry = data.map {
        StorageEntry(
          version: settings.version, date: date ?? store.context.now(), data: $0,
          isInvalidated: isInvalidated)
      }
      return SavedChange(entry: entry) { [self] in facts.withLock { $0.saved = mark } }
    } catch {
      // Not again until it changes.
      facts.withLock { $0.saved = mark }
      OperationIssue.report(
        .unsavedValue,
        "The value of \(store.path) is not saved, because it cannot be encoded: \(error)")
      return nil
    }
  }
}

extension StoreMachine {
  /// Numbers that differ after each change of what is saved. The first two stand for what is final: results,
  /// and edits that have succeeded.
  var savedMark: [Int] { savedMark(isInvalidated: freshness.isInvalidated) }

  private func savedMark(isInvalidated: Bool) -> [Int] {
    [
      committed.resultCount, edits.settlementCount, state.valueUpdateCount,
      committed.undoneYieldCount, isInvalidated ? 1 : 0,
    ]
  }

  /// Ends the loading of a saved value, and displays it if nothing newer has come. Returns its mark if it
  /// does.
  ///
  /// - Parameters:
  ///   - restore: Writes the value into the state; `nil` if there is none.
  ///   - isInvalidated: Whether the value was invalidated when it was saved.
  fileprivate mutating func finishRestoring(
    _ form: SavedForm<State>, _ restore: SavedForm<State>.Restoration?, isInvalidated: Bool
  ) -> [Int]? {
    committed.changeAll { form.setRestoring(&$0, false) }
    defer { notifyChange() }
    guard committed.resultCount == 0 else { return nil }
    if restore != nil, isInvalidated { freshness.restoreInvalidated() }
    // If what a run has yielded is displayed, the saved value is restored when the run is cancelled.
    committed.changeYields { if $0.valueUpdateCount == 0 { restore?(&$0) } }
    guard state.valueUpdateCount == 0 else { return nil }
    land(after: edits.settlementCount) { restore?(&$0) }
    if restore == nil { return nil }
    committed.noteResult()
    return savedMark(isInvalidated: isInvalidated)
  }
}

// MARK: - The form of a state

/// How a state is saved, without the type of what is saved.
struct SavedForm<State: OperationState>: Sendable {
  typealias Restoration = @Sendable (inout State) -> Void

  let setRestoring: @Sendable (inout State, Bool) -> Void
  /// Returns `nil` for a state with nothing to save.
  let encode: @Sendable (State) throws -> Data?
  /// Returns `nil` for an entry of a lower version than the given one that is dropped.
  let decode: @Sendable (StorageEntry, _ version: Int, OperationContext) throws -> Restoration?

  /// - Parameter coding: The `StorageCoding` of the saved value; `nil` is JSON, if its type is `Codable`.
  init?(coding: (any Sendable)?) {
    func form<Saved: PersistableState>(of type: Saved.Type) -> SavedForm? {
      let given = coding.map { $0 as? StorageCoding<Saved.SavedValue> } ?? .ifCodable()
      return given.map { SavedForm<Saved>($0) } as? SavedForm
    }
    guard let form = (State.self as? any PersistableState.Type).flatMap({ form(of: $0) }) else {
      return nil
    }
    self = form
  }
}

extension SavedForm where State: PersistableState {
  fileprivate init(_ coding: StorageCoding<State.SavedValue>) {
    setRestoring = { $0.setRestoring($1) }
    encode = { try $0.savedValue.map(coding.encode) }
    decode = { entry, version, context in
      let saved = try coding.value(of: entry.data, version: entry.version, expected: version)
      guard var value = saved else { return nil }
      State.prepare(saved: &value, in: context)
      return { [value] state in state.restore(value, from: entry.date) }
    }
  }
}
