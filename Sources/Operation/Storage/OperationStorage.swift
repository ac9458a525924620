public import FoundationEssentials

/// One saved value or one saved call: bytes with the version of their encoding, a date, and whether the value was
/// invalidated.
public struct StorageEntry: Sendable, Hashable {
  /// The version of what the bytes encode, as the request states it.
  public var version: Int
  /// The date of the value, or of the call.
  public var date: Date
  /// The encoded value.
  public var data: Data
  /// Whether the value was invalidated, and was neither fetched nor set since. `false` for a call. If a storage
  /// does not keep this, an invalidated value counts as valid after a restart.
  public var isInvalidated: Bool

  /// Creates an entry.
  public init(version: Int, date: Date, data: Data, isInvalidated: Bool = false) {
    self.version = version
    self.date = date
    self.data = data
    self.isInvalidated = isInvalidated
  }
}

/// A place that keeps entries after the program has ended, such as a directory or a database.
///
/// ``FileStorage`` keeps them in files, and ``MemoryStorage`` in memory, for tests. A client calls the
/// methods on no actor, with no lock held, and several of them at the same time. What they throw is
/// reported, and the client continues.
public protocol OperationStorage: Sendable {
  /// Returns the entry under a key, or `nil` if there is none.
  ///
  /// - Throws: An error if the entry cannot be read, or is not complete. A storage that notices this
  ///   itself moves the entry aside first, so that the next call returns `nil`.
  nonisolated(nonsending) func load(_ key: String) async throws -> StorageEntry?

  /// Saves entries, each of which replaces the one under its key.
  ///
  /// When this returns, the entries survive a loss of power. If it throws, or the program ends before, each
  /// key has its old or its new entry, complete.
  nonisolated(nonsending) func save(_ entries: [String: StorageEntry]) async throws

  /// Removes the entries under some keys. A key without an entry is no error.
  nonisolated(nonsending) func remove(_ keys: [String]) async throws

  /// Returns the keys that begin with `prefix`, in any order.
  ///
  /// - Throws: An error if the storage cannot be read.
  nonisolated(nonsending) func keys(withPrefix prefix: String) async throws -> [String]

  /// Moves an entry that cannot be decoded to where a person can find it, and no client does.
  ///
  /// The default saves it under a key that begins with `aside/`, and removes it under its own.
  ///
  /// - Throws: An error if the storage cannot be written.
  nonisolated(nonsending) func setAside(_ key: String) async throws
}

extension OperationStorage {
  /// Saves the entry under a key that begins with `aside/`, and removes it under its own.
  nonisolated(nonsending) public func setAside(_ key: String) async throws {
    // No client loads an entry whose key begins with this.
    if let entry = try await load(key) { try await save(["aside/" + key: entry]) }
    try await remove([key])
  }

  /// Returns the keys of the entries that can be read. An entry that cannot be read is moved aside by the
  /// storage, reported, and then the others are listed.
  ///
  /// - Parameter loss: What the report says.
  nonisolated(nonsending) func readableKeys(
    withPrefix prefix: String, reporting loss: String
  ) async throws -> [String] {
    var known: Set<StorageError> = []
    while true {
      do { return try await keys(withPrefix: prefix) } catch {
        // One of them again: the storage has not moved it aside.
        guard let error = error as? StorageError, error.isAboutEntry, known.insert(error).inserted
        else { throw error }
        OperationIssue.report(.unreadableEntry, "\(loss): \(error)")
      }
    }
  }
}

/// An error of a storage that the library provides.
public enum StorageError: Error, Sendable, Hashable, CustomStringConvertible {
  /// A directory cannot be used, for a reason.
  case unusable(directory: String, reason: String)
  /// Another storage, of this process or of another one, writes to the directory.
  case inUse(directory: String)
  /// The storage was opened for reading only.
  case readOnly(directory: String)
  /// The file of an entry is not complete, was changed, or is that of another entry. A storage that writes has
  /// moved it aside.
  case damaged(key: String, file: String, reason: String)
  /// The file of an entry has a format of a later version of the library. A storage that writes has
  /// moved it aside.
  case tooNew(key: String, file: String, format: Int)
  /// The file of an entry belongs to another user, or is no file. A storage that writes has moved it aside.
  case foreign(key: String, file: String)
  /// A call of the system failed.
  case system(call: String, file: String, code: Int32)
  /// A ``MemoryStorage`` lost its power while it saved.
  case powerLost

  /// Whether one entry cannot be read, and others can.
  var isAboutEntry: Bool {
    switch self {
    case .damaged, .tooNew, .foreign: true
    case .unusable, .inUse, .readOnly, .system, .powerLost: false
    }
  }

  /// A sentence that names the file or the directory.
  public var description: String {
    switch self {
    case .unusable(let directory, let reason):
      "The directory \(directory) cannot be used: \(reason)."
    case .inUse(let directory):
      "The directory \(directory) is in use by another client; open it for reading only, or use another one."
    case .readOnly(let directory): "The directory \(directory) was opened for reading only."
    case .damaged(let key, let file, let reason):
      "The file \(file) of \(key) is damaged (\(reason)); a storage that writes moves it aside."
    case .tooNew(let key, let file, let format):
      "The file \(file) of \(key) has the format \(format) of a later version; a storage that writes moves it aside."
    case .foreign(let key, let file):
      "The file \(file) of \(key) is not a file of this user; a storage that writes moves it aside."
    case .system(let call, let file, let code):
      "\(call) failed for \(file): \(SystemError(code: code).text)."
    case .powerLost: "The storage lost its power while it saved."
    }
  }
}
