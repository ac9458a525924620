import Dispatch
public import FoundationEssentials

/// A storage that keeps each entry in a file of one directory.
///
/// ```swift
/// let client = OperationClient(storage: try FileStorage(directory: "/var/lib/shop/state"))
/// ```
///
/// Only the user can access the directory (mode 0700) and its files (0600). A file has the name of its
/// key, and begins with a line that a person can read. It is always complete: a new one is written beside
/// it, flushed, and renamed over it. A file that is torn, too new, or of another user is moved aside, to a
/// name that ends with `.aside-1`, and the call that finds it throws an error.
///
/// The calls of the system are made on a thread of the storage, one after the other.
public final class FileStorage: OperationStorage {
  /// What the storage does in its directory.
  public enum Access: Sendable, Hashable {
    /// Reads and writes. One storage has this access to a directory at a time.
    case readWrite
    /// Only reads, also beside a storage that writes. What a client would save is dropped, without a report,
    /// and files that cannot be read stay where they are.
    case readOnly
  }

  private let stored: StoredFiles
  /// The calls of the system block.
  private let queue = DispatchQueue(label: "swift-operation.storage")

  /// Opens a directory, and creates it if needed.
  ///
  /// - Parameters:
  ///   - directory: The path. Those that contain it are created, too.
  ///   - access: What the storage does there.
  /// - Throws: ``StorageError/unusable(directory:reason:)`` for a directory that is a file, that belongs to
  ///   another user, or that contains other files and that others can access;
  ///   ``StorageError/inUse(directory:)`` if another storage writes there, also one of this process that its
  ///   client or a store still retains; ``StorageError/system(call:file:code:)`` if a temporary file of an
  ///   earlier program cannot be removed.
  public convenience init(
    directory: String, access: Access = .readWrite
  ) throws(StorageError) {
    let files = try DirectoryFiles(directory, isReadOnly: access == .readOnly)
    try self.init(files, access: access)
  }

  /// Opens a directory, as `init(directory:access:)` with a path does.
  public convenience init(directory: URL, access: Access = .readWrite) throws(StorageError) {
    try self.init(directory: directory.path, access: access)
  }

  package init(_ files: any StorageFiles, access: Access = .readWrite) throws(StorageError) {
    stored = StoredFiles(files: files, isReadOnly: access == .readOnly)
    if access == .readWrite { try stored.removeTemporaryFiles() }
  }

  /// Returns the entry under a key.
  ///
  /// - Throws: ``StorageError``.
  nonisolated(nonsending) public func load(_ key: String) async throws -> StorageEntry? {
    try await perform { try $0.load(key) }
  }

  /// Saves entries, and flushes them to the disk.
  ///
  /// - Throws: ``StorageError``.
  nonisolated(nonsending) public func save(_ entries: [String: StorageEntry]) async throws {
    try await perform(isChange: true) { try $0.save(entries) }
  }

  /// Removes the files of entries.
  ///
  /// - Throws: ``StorageError``.
  nonisolated(nonsending) public func remove(_ keys: [String]) async throws {
    try await perform(isChange: true) { try $0.remove(keys) }
  }

  /// Returns the keys with a prefix. It reads the files whose names begin with it.
  ///
  /// - Throws: ``StorageError``.
  nonisolated(nonsending) public func keys(withPrefix prefix: String) async throws -> [String] {
    try await perform { try $0.keys(withPrefix: prefix) }
  }

  /// Renames the file of an entry.
  ///
  /// - Throws: ``StorageError``.
  nonisolated(nonsending) public func setAside(_ key: String) async throws {
    try await perform(isChange: true) { try $0.setAside(key) }
  }

  nonisolated(nonsending) private func perform<Output: Sendable>(
    isChange: Bool = false, _ body: @escaping @Sendable (StoredFiles) throws -> Output
  ) async throws -> Output {
    if isChange, stored.isReadOnly {
      throw StorageError.readOnly(directory: stored.files.directory)
    }
    return try await withCheckedThrowingContinuation { continuation in
      // The caller has this object until then. The queue must not: it would keep the directory locked when
      // the call has returned.
      queue.async { [unowned self] in
        continuation.resume(with: Result { try body(self.stored) })
      }
    }
  }
}
