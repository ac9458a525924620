import Foundation

/// What a program reports about one of its stores.
struct StoreRecord: Equatable, Sendable, Identifiable {
  let id: Int
  var path: [String]
  var request: String
  var kind: String
  var status: Status
  var isStale: Bool
  /// The value as a short text, or at full length in a detail.
  var value: String
  /// The last error, if the last result is one.
  var error: String?
  var times: Times
  var numbers: Numbers
  var links: Links

  enum Status: String, CaseIterable, Sendable {
    case loading, paused, failure, success, idle
  }

  /// Points of time, in seconds since 1970.
  struct Times: Equatable, Sendable {
    var updated: Double?
    var failed: Double?
  }

  struct Numbers: Equatable, Sendable {
    var subscribers = 0
    /// The awaiters of the runs in flight.
    var leases = 0
    var runs = 0
    var valueUpdates = 0
    var errorUpdates = 0
    /// The pending optimistic edits.
    var edits = 0
    /// The calls that wait in a serial scope.
    var queued = 0
  }

  /// The stores that a store reads and that read it, by their identifiers.
  struct Links: Equatable, Sendable {
    var reads: [Int] = []
    var readBy: [Int] = []
  }
}

extension StoreRecord {
  /// The path as one text.
  var name: String { path.isEmpty ? "(no path)" : path.joined(separator: "/") }

  /// The time of the last result, in seconds since 1970; `nil` without a result.
  var lastResult: Double? {
    guard let updated = times.updated else { return times.failed }
    return max(updated, times.failed ?? updated)
  }

  /// Returns whether all words of a filter occur in the path, the request, the status or the error.
  func matches(_ words: [String]) -> Bool {
    guard !words.isEmpty else { return true }
    let freshness = lastResult == nil ? "" : isStale ? "stale" : "fresh"
    let text = "\(name) \(request) \(kind) \(status.rawValue) \(freshness) \(error ?? "")"
      .lowercased()
    return words.allSatisfy { text.contains($0) }
  }
}

extension StoreRecord: Decodable {
  init(from decoder: any Decoder) throws {
    let fields = try MessageFields(decoder)
    id = try fields.required("id")
    path = Self.limited(try fields.required("path"))
    request = try fields("request") ?? ""
    kind = try fields("kind") ?? "other"
    let status: String? = try fields("status")
    self.status = status.flatMap(Status.init) ?? .idle
    isStale = try fields("isStale") ?? false
    value = try fields("value") ?? ""
    error = try fields("error")
    times = try Times(updated: fields.time("updated"), failed: fields.time("failed"))
    func number(_ name: String) throws -> Int { try fields(name) ?? 0 }
    numbers = try Numbers(
      subscribers: number("subscribers"), leases: number("leases"), runs: number("runs"),
      valueUpdates: number("valueUpdates"), errorUpdates: number("errorUpdates"),
      edits: number("edits"), queued: number("queued"))
    links = try Links(reads: fields("reads") ?? [], readBy: fields("readBy") ?? [])
  }

  /// Returns a path that is no deeper than a tree can be drawn: the last element has the rest.
  private static func limited(_ path: [String]) -> [String] {
    let depth = 64
    guard path.count > depth else { return path }
    return path[..<(depth - 1)] + [path[(depth - 1)...].joined(separator: "/")]
  }
}
