public import FoundationEssentials

/// A call of a persisted mutation that has not ended, as the ``OperationOutbox`` lists it.
public struct OutboxCall: Sendable, Hashable, Identifiable {
  /// What happens with a call.
  public enum Status: Sendable, Hashable {
    /// The call was made by an earlier program and is not resumed yet, its arguments could not be
    /// decoded, or a shutdown has cut it off.
    case waiting
    /// The call runs, or waits for others or for a connection.
    case running
    /// The resumed call has failed, with an error that is described here. It can be made again.
    case failed(String)
  }

  /// The identifier of the call, which is the same after a restart: see
  /// ``OperationContext/operationCallID``.
  public let id: String
  /// The name of the mutation: the form of its path, or the name that `persisted(as:)` gives it.
  public let mutation: String
  /// The encoded arguments.
  public let arguments: Data
  /// The version of the arguments.
  public let version: Int
  /// When the call was made.
  public let date: Date
  /// The number of attempts that were begun, by this program and by earlier ones.
  public internal(set) var attempts: Int
  /// What happens with the call.
  public internal(set) var status: Status
}

/// Identifies a call in the storage. Calls are sorted by their keys in the order in which they were made.
struct OutboxEntry: Sendable, Hashable, Comparable {
  let key: String

  init(_ id: OutboxCall.ID, number: Int) {
    key = "\(StorageKey.calls)\(String(number).padded(toLength: 16))-\(id)"
  }

  init(_ key: String) { self.key = key }

  static func < (lhs: OutboxEntry, rhs: OutboxEntry) -> Bool { lhs.key < rhs.key }

  /// The number by which a key sorts calls, limited so that others can follow it; `nil` for another key.
  static func number(of key: String) -> Int? {
    Int(key.dropFirst(StorageKey.calls.utf8.count).prefix { $0 != "-" }).map { min($0, .max / 2) }
  }
}

/// One resumption of a call: of several, the last one makes it.
struct ResumedCall: Sendable {
  let entry: OutboxEntry
  let resumption: Int
}

extension OutboxCall {
  /// What is encoded in an entry, as JSON. The version and the date are those of the entry.
  private struct Saved: Codable {
    let id: String
    let mutation: String
    let arguments: Data
    let attempts: Int
  }

  var encoded: StorageEntry? {
    let content = Saved(id: id, mutation: mutation, arguments: arguments, attempts: attempts)
    // Texts, bytes and a number can always be encoded.
    return (try? JSONEncoder().encode(content)).map {
      StorageEntry(version: version, date: date, data: $0)
    }
  }

  /// Decodes a call that an earlier program has saved.
  init(decoding entry: StorageEntry) throws {
    let saved = try JSONDecoder().decode(Saved.self, from: entry.data)
    // A damaged number must not overflow when attempts are added.
    let attempts = min(max(saved.attempts, 0), .max / 2)
    self.init(
      id: saved.id, mutation: saved.mutation, arguments: saved.arguments, version: entry.version,
      date: entry.date, attempts: attempts, status: .waiting)
  }
}
