import FoundationEssentials

/// The calls of the system by which entries are kept in one directory. A test replaces them with a disk
/// that fails and tears. Contents are bytes, and no `Data`, which would need a `package import`.
package protocol StorageFiles: Sendable {
  /// The path of the directory.
  var directory: String { get }

  /// Returns the names of the files, in any order.
  func names() throws(StorageError) -> [String]
  /// Returns the contents of a file, `nil` if there is none. What is no file of this user is an error
  /// `foreign`, with an empty key.
  func read(_ name: String) throws(StorageError) -> [UInt8]?
  /// Creates or replaces a file that only the user can read.
  func write(_ bytes: [UInt8], to name: String) throws(StorageError)
  /// Returns when the contents of a file survive a loss of power.
  func flush(_ name: String) throws(StorageError)
  func rename(_ name: String, to new: String) throws(StorageError)
  /// Removes a file, if there is one.
  func remove(_ name: String) throws(StorageError)
  /// Returns when the names of the files survive a loss of power.
  func flushNames() throws(StorageError)
}

/// Keeps each entry in a file, by the calls of the system.
///
/// A new entry is written to a temporary file. The file is flushed, and then gets the name of the old one. At
/// last the directory is flushed. So under each name there is always a complete file, an old or a new one,
/// whatever the moment at which the program or the machine ends.
struct StoredFiles: Sendable {
  private static let suffix = ".entry"
  private static let temporarySuffix = ".entry-new"
  private static let longestName = 120

  let files: any StorageFiles
  /// Whether nothing is changed: what cannot be read stays where it is.
  let isReadOnly: Bool

  /// The name of an entry's file: the readable part of its key, and a hash of the key.
  static func name(for key: String) -> String {
    var hash = Checksum()
    hash.add(key.utf8)
    return "\(readable(key).prefix(longestName))-\(hash)\(suffix)"
  }

  /// Whether a file has the name of one of a storage.
  static func isOwn(_ name: String) -> Bool {
    name.hasSuffix(suffix) || name.hasSuffix(temporarySuffix) || name.contains("\(suffix).aside-")
  }

  private static func readable(_ key: String) -> String {
    String(
      key.unicodeScalars.map { scalar in
        let isPlain = scalar.isASCII && scalar.properties.isAlphabetic
        let isKept = isPlain || ("0"..."9").contains(scalar) || "-.".unicodeScalars.contains(scalar)
        return isKept ? Character(scalar) : "_"
      })
  }

  /// Removes temporary files that a program has left when it ended.
  func removeTemporaryFiles() throws(StorageError) {
    for name in try files.names() where name.hasSuffix(Self.temporarySuffix) {
      try files.remove(name)
    }
  }

  func load(_ key: String) throws(StorageError) -> StorageEntry? {
    // Another key can have the same name; then this one has no entry.
    try decode(Self.name(for: key), of: key).flatMap { $0.key == key ? $0.entry : nil }
  }

  /// Reads a file. One that is not an entry is moved aside.
  private func decode(
    _ name: String, of key: String
  ) throws(StorageError) -> (key: String, entry: StorageEntry)? {
    let file = "\(files.directory)/\(name)"
    do throws(StorageError) {
      guard let bytes = try files.read(name) else { return nil }
      let found = try StorageFormat.decode(Data(bytes), of: key, in: file)
      if Self.name(for: found.key) == name { return found }
      throw .damaged(key: key, file: file, reason: "it is the file of \(found.key)")
    } catch {
      if error.isAboutEntry { try moveAside(name) }
      if case .foreign = error { throw .foreign(key: key, file: file) }
      throw error
    }
  }

  func save(_ entries: [String: StorageEntry]) throws(StorageError) {
    // In one order, so that the calls of two programs that do the same are the same.
    let names = entries.map { ($0.key, Self.name(for: $0.key), $0.value) }.sorted { $0.1 < $1.1 }
    do {
      for (key, name, entry) in names {
        let temporary = temporary(name)
        try files.write(Array(StorageFormat.encode(entry, for: key)), to: temporary)
        try files.flush(temporary)
      }
      for (_, name, _) in names { try files.rename(temporary(name), to: name) }
    } catch {
      for (_, name, _) in names { try? files.remove(temporary(name)) }
      throw error
    }
    try files.flushNames()
  }

  func remove(_ keys: [String]) throws(StorageError) {
    var failure: StorageError?
    for key in keys {
      do { try files.remove(Self.name(for: key)) } catch { failure = failure ?? error }
    }
    // Also after a failure, for those that are removed.
    do { try files.flushNames() } catch { failure = failure ?? error }
    if let failure { throw failure }
  }

  /// Returns the keys that begin with `prefix`. A file without a readable key is moved aside, and thrown
  /// as an error; the next call returns the others. Where nothing is changed, it is left out.
  func keys(withPrefix prefix: String) throws(StorageError) -> [String] {
    let readable = Self.readable(prefix).prefix(Self.longestName)
    var keys: [String] = []
    for name in try files.names() where name.hasSuffix(Self.suffix) && name.hasPrefix(readable) {
      do {
        if let key = try decode(name, of: "\(prefix)…")?.key, key.hasPrefix(prefix) {
          keys.append(key)
        }
      } catch {
        if !isReadOnly || !error.isAboutEntry { throw error }
      }
    }
    return keys
  }

  func setAside(_ key: String) throws(StorageError) { try moveAside(Self.name(for: key)) }

  private func moveAside(_ name: String) throws(StorageError) {
    if isReadOnly { return }
    let taken = Set(try files.names())
    let free = (1...).lazy.map { "\(name).aside-\($0)" }.first { !taken.contains($0) }
    guard let free else { return }
    try files.rename(name, to: free)
    try files.flushNames()
  }

  private func temporary(_ name: String) -> String {
    name.dropLast(Self.suffix.utf8.count) + Self.temporarySuffix
  }
}
