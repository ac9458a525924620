public import FoundationEssentials
import Synchronization

/// A call of a persisted mutation that has not ended, as the ``OperationOutbox`` lists it.
public struct OutboxCall: Sendable, Hashable, Identifiable {
  /// What happens with a call.
  public enum Status: Sendable, Hashable {
    /// The call was made by an earlier program, and is not resumed yet.
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

/// A call in the storage. Calls are sorted by their keys in the order in which they were made.
///
/// The lock guards the call, and whether it has ended.
final class OutboxEntry: SavedItem {
  private struct Facts: Sendable {
    var call: OutboxCall
    var isEnded = false
    /// The mark of what is in the storage.
    var saved: [Int] = []
  }

  /// What is encoded in the entry, as JSON.
  private struct Saved: Codable {
    let id: String
    let mutation: String
    let arguments: Data
    let attempts: Int
  }

  let key: String
  private let facts: Mutex<Facts>

  init(_ call: OutboxCall, number: Int) {
    let digits = String(number)
    let zeros = String(repeating: "0", count: max(0, 16 - digits.utf8.count))
    key = "\(StorageKey.calls)\(zeros)\(digits)-\(call.id)"
    facts = Mutex(Facts(call: call))
  }

  /// Decodes a call that an earlier program has saved.
  init(_ entry: StorageEntry, under key: String) throws {
    let saved = try JSONDecoder().decode(Saved.self, from: entry.data)
    self.key = key
    let call = OutboxCall(
      id: saved.id, mutation: saved.mutation, arguments: saved.arguments, version: entry.version,
      date: entry.date, attempts: saved.attempts, status: .waiting)
    facts = Mutex(Facts(call: call, saved: [saved.attempts]))
  }

  /// The number by which a key sorts calls; `nil` for another key.
  static func number(of key: String) -> Int? {
    Int(key.dropFirst(StorageKey.calls.utf8.count).prefix { $0 != "-" })
  }

  var hasEnded: Bool { facts.withLock { $0.isEnded } }

  var call: OutboxCall { facts.withLock { $0.call } }

  func update(_ change: (inout OutboxCall) -> Void) { facts.withLock { change(&$0.call) } }

  /// The call has ended: the storage must not keep it. Returns `false` if it had ended before.
  func end() -> Bool {
    facts.withLock { facts in
      defer { facts.isEnded = true }
      return !facts.isEnded
    }
  }

  var owner: ObjectIdentifier { ObjectIdentifier(self) }

  func takeChange() -> SavedChange? {
    let (call, isEnded, saved) = facts.withLock { ($0.call, $0.isEnded, $0.saved) }
    let mark = isEnded ? [-1] : [call.attempts]
    if mark == saved { return nil }
    if isEnded { return SavedChange(mark: mark, entry: nil) }
    let content = Saved(
      id: call.id, mutation: call.mutation, arguments: call.arguments, attempts: call.attempts)
    // Texts, bytes and a number can always be encoded.
    guard let data = try? JSONEncoder().encode(content) else { return nil }
    return SavedChange(
      mark: mark, entry: StorageEntry(version: call.version, date: call.date, data: data))
  }

  func didSave(_ change: SavedChange) { facts.withLock { $0.saved = change.mark } }
}
