import Synchronization

/// A storage in memory, for tests: it can fail, be slow, and lose what it has not saved yet.
///
/// Two clients that use one storage one after the other stand for a program that was started again.
public final class MemoryStorage: OperationStorage {
  private struct Contents: Sendable {
    var entries: [String: StorageEntry]
    var setAside: [String: StorageEntry] = [:]
    var failure: (any Error)?
    var delay = Duration.zero
    /// The number of times that the power was lost.
    var losses = 0
    var saveCount = 0
  }

  private let clock: any OperationClock
  /// The lock guards what the storage contains, and how it behaves.
  private let contents: Mutex<Contents>

  /// Creates a storage.
  ///
  /// - Parameters:
  ///   - entries: What it contains.
  ///   - clock: The clock that measures the ``delay``.
  public init(_ entries: [String: StorageEntry] = [:], clock: any OperationClock = SystemClock()) {
    self.clock = clock
    contents = Mutex(Contents(entries: entries))
  }

  /// What the storage contains. Setting it is what another program would do.
  public var entries: [String: StorageEntry] {
    get { contents.withLock { $0.entries } }
    // What it replaces is released after the lock: bytes can have a deallocator of the user.
    set { withExtendedLifetime(contents.withLock { exchange(&$0.entries, with: newValue) }) {} }
  }

  /// The entries that were set aside.
  public var entriesSetAside: [String: StorageEntry] { contents.withLock { $0.setAside } }

  /// The number of calls of ``save(_:)`` that have succeeded.
  public var saveCount: Int { contents.withLock { $0.saveCount } }

  /// The error that every call throws; `nil`, the default, lets them succeed.
  public var failure: (any Error)? {
    get { contents.withLock { $0.failure } }
    // What it replaces is released after the lock: an error can have a deinitialiser of the user.
    set { withExtendedLifetime(contents.withLock { exchange(&$0.failure, with: newValue) }) {} }
  }

  /// The time that every call takes, by the clock of the storage; zero by default.
  public var delay: Duration {
    get { contents.withLock { $0.delay } }
    set { contents.withLock { $0.delay = newValue } }
  }

  /// Loses all that is being saved and removed: these calls throw ``StorageError/powerLost``.
  public func losePower() { contents.withLock { $0.losses += 1 } }

  /// Returns the entry under a key.
  ///
  /// - Throws: The failure that was set, ``StorageError/powerLost``, or `CancellationError` during the delay.
  nonisolated(nonsending) public func load(_ key: String) async throws -> StorageEntry? {
    try await perform { $0.entries[key] }
  }

  /// Saves entries.
  ///
  /// - Throws: The failure that was set, ``StorageError/powerLost``, or `CancellationError` during the delay.
  nonisolated(nonsending) public func save(_ entries: [String: StorageEntry]) async throws {
    let replaced = try await perform { contents in
      contents.saveCount += 1
      return entries.map { contents.entries.updateValue($0.value, forKey: $0.key) }
    }
    withExtendedLifetime(replaced) {}
  }

  /// Removes entries.
  ///
  /// - Throws: The failure that was set, ``StorageError/powerLost``, or `CancellationError` during the delay.
  nonisolated(nonsending) public func remove(_ keys: [String]) async throws {
    let removed = try await perform { contents in
      keys.map { contents.entries.removeValue(forKey: $0) }
    }
    withExtendedLifetime(removed) {}
  }

  /// Returns the keys with a prefix, sorted.
  ///
  /// - Throws: The failure that was set, ``StorageError/powerLost``, or `CancellationError` during the delay.
  nonisolated(nonsending) public func keys(withPrefix prefix: String) async throws -> [String] {
    try await perform { $0.entries.keys.filter { $0.hasPrefix(prefix) } }.sorted()
  }

  /// Moves an entry to ``entriesSetAside``.
  ///
  /// - Throws: The failure that was set, ``StorageError/powerLost``, or `CancellationError` during the delay.
  nonisolated(nonsending) public func setAside(_ key: String) async throws {
    let replaced = try await perform { contents in
      contents.entries.removeValue(forKey: key).flatMap {
        contents.setAside.updateValue($0, forKey: key)
      }
    }
    withExtendedLifetime(replaced) {}
  }

  /// Waits as long as a call takes, and performs it, unless the power was lost meanwhile.
  nonisolated(nonsending) private func perform<Output: Sendable>(
    _ body: (inout Contents) -> Output
  ) async throws -> Output {
    let (delay, losses) = contents.withLock { ($0.delay, $0.losses) }
    if delay > .zero { try await clock.sleep(for: delay) }
    return try contents.withLock { contents in
      if contents.losses != losses { throw StorageError.powerLost }
      if let failure = contents.failure { throw failure }
      return body(&contents)
    }
  }
}
