import Foundation
import Glibc
import Synchronization
import Testing

@testable import Operation

/// A line of any type from an inspector.
struct InspectorLine: Decodable, Sendable {
  struct Store: Decodable, Sendable {
    let id: Int
    let path: [String]
    let request, kind, status: String
    let isStale: Bool
    let updated, failed: Double?
    let subscribers, leases, runs, valueUpdates, errorUpdates, edits, queued: Int
    let error: String?
    let value: String
    let reads, readBy: [Int]
    let isTruncated: Bool?
    let rules: [Rule]?
    let calls: [Call]?
    let pages: Int?
  }

  struct Rule: Decodable, Sendable { let name, value: String }
  struct Call: Decodable, Sendable { let arguments, status: String }

  struct Event: Decodable, Sendable {
    let store: Int
    let time: Double
    let kind: String
    let run: UInt64?
    let cause, outcome, message: String?
    let attempt: Int?
  }

  let type: String
  let `protocol`, pid, id, missed: Int?
  let program, name, error, reason: String?
  let time, now, started: Double?
  let readOnly, canGoOffline, isOffline, ok: Bool?
  let counts: [String: Int]?
  let stores: [Store]?
  let store: Store?
  let removed: [Int]?
  let events: [Event]?
}

/// A client of an inspector: a socket, and the lines that it has received.
final class InspectingPeer: Sendable {
  private final class Socket: Sendable {
    let number: Int32
    init() {
      number = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    }
    deinit { close(number) }
  }

  private let socket = Socket()
  /// The lines that were received. The last one is `nil` at the end of the connection.
  let lines = Recorder<InspectorLine?>()
  /// The number of bytes that were received.
  let received = Monitor(0)

  init(at path: String, reads: Bool = true) throws {
    // A test that receives nothing fails, and does not wait forever.
    var silence = timeval(tv_sec: 120 * patience, tv_usec: 0)
    setsockopt(
      socket.number, SOL_SOCKET, SO_RCVTIMEO, &silence, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket.number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard result == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    if reads { read() }
  }

  /// Starts a thread that reads.
  func read() {
    Thread.detachNewThread { [socket, lines, received] in
      var rest: [UInt8] = []
      var bytes = [UInt8](repeating: 0, count: 1 << 16)
      while case let count = recv(socket.number, &bytes, bytes.count, 0), count > 0 {
        received.update { $0 += count }
        rest += bytes[..<count]
        var parts = rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        rest = Array(parts.removeLast())
        for part in parts {
          do {
            lines.append(try JSONDecoder().decode(InspectorLine.self, from: Data(part)))
          } catch {
            Issue.record("\(error): \(String(decoding: part, as: UTF8.self))")
          }
        }
      }
      lines.append(nil)
    }
  }

  /// Sends bytes without a change, and returns whether the program has received all of them.
  @discardableResult
  func send(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes {
        Glibc.send(socket.number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count < 0 { return false }
      sent += count
    }
    return true
  }

  func hangUp() { shutdown(socket.number, Int32(SHUT_RDWR)) }

  deinit { hangUp() }

  /// Waits for a line.
  func line(
    where matches: @escaping @Sendable (InspectorLine) -> Bool
  ) async throws -> InspectorLine {
    await lines.wait { $0.contains { $0.map(matches) ?? true } }
    return try #require(lines.all.lazy.compactMap { $0 }.first(where: matches))
  }

  func line(_ type: String) async throws -> InspectorLine { try await line { $0.type == type } }

  /// Waits for a state of a store, in the snapshot or in a change.
  @discardableResult
  func store(
    _ path: String...,
    where matches: @escaping @Sendable (InspectorLine.Store) -> Bool = { _ in true }
  ) async throws -> InspectorLine.Store {
    let line = try await line { $0.stores?.contains { $0.path == path && matches($0) } ?? false }
    return try #require(line.stores?.first { $0.path == path && matches($0) })
  }

  func event(
    where matches: @escaping @Sendable (InspectorLine.Event) -> Bool
  ) async throws -> InspectorLine.Event {
    let line = try await line { $0.events?.contains(where: matches) ?? false }
    return try #require(line.events?.first(where: matches))
  }

  /// Sends a command, and waits for its reply.
  func command(_ id: Int, _ text: String) async throws -> InspectorLine {
    send(#"{"id":\#(id),\#(text)}"# + "\n")
    return try await line { $0.type == "reply" && $0.id == id }
  }

  /// Waits for the end of the connection. Returns the reason of the last message.
  func end() async -> String? {
    await lines.wait { $0.contains { $0 == nil } }
    return lines.all.compactMap { $0 }.last { $0.type == "bye" }?.reason
  }
}

/// A private directory, which is removed at the end of a test.
final class SocketDirectory: Sendable {
  let path: String

  init() {
    // A short name: the path of a socket has at most 107 bytes.
    let directory = FileManager.default.temporaryDirectory.path
    // `mkdtemp` requires six of these letters, and replaces them.
    let letters = String(repeating: "X", count: 6)
    var template = Array("\(directory)/operation-\(letters)".utf8CString)
    path = String(cString: mkdtemp(&template))
  }

  var socket: String { "\(path)/test.sock" }

  static func mode(of path: String) -> mode_t? {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_mode : nil
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}
