import Foundation
import Glibc
import Testing

@testable import inspect

/// The program `inspect --web`, with a client for plain requests.
final class WebChild {
  let child: ProgramChild
  let address: String
  let port: UInt16
  let token: String

  init(_ program: FakeProgram, arguments: [String] = []) throws {
    child = try ProgramChild(
      [TerminalChild.program("inspect"), program.path, "--web"] + arguments)
    // The inspector connects once to check that the program answers.
    try program.accept().waitForEnd()
    address = try #require(try child.line())
    let parts = try #require(URLComponents(string: address))
    port = UInt16(try #require(parts.port))
    token = try #require(parts.queryItems?.first { $0.name == "token" }?.value)
  }

  /// Opens a connection and sends bytes.
  func connect(_ text: String) throws -> Descriptor {
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = Descriptor(owning: socket(AF_INET, kind, 0))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    address.sin_port = port.bigEndian
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(descriptor.number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    try #require(result == 0)
    try #require(StandardStreams.write(text, to: descriptor.number))
    return descriptor
  }

  /// Sends a request, and returns the whole response.
  func answer(to text: String) throws -> String {
    let descriptor = try connect(text)
    var answer: [UInt8] = []
    while true {
      try wait(descriptor, for: "an answer")
      guard case .bytes(let bytes) = descriptor.read() else { break }
      answer += bytes
    }
    return String(decoding: answer, as: UTF8.self)
  }

  /// Sends a command for the program of a stream, and returns the status.
  func post(_ body: String, stream: String, type: String = "application/json") throws -> String {
    let fields = ["Origin: http://127.0.0.1:\(port)", "Content-Type: \(type)"]
    let answer = try answer(
      to: request("POST", "/command?stream=\(stream)", token: token, fields: fields, body: body))
    return String(answer.split(separator: " ")[1])
  }

  /// Returns a request with the valid host and token by default.
  func request(
    _ method: String, _ path: String, host: String? = nil, token: String?,
    fields: [String] = [], body: String = ""
  ) -> String {
    let separator = path.contains("?") ? "&" : "?"
    let query = token.map { "\(separator)token=\($0)" } ?? ""
    let lines =
      ["\(method) \(path)\(query) HTTP/1.1", "Host: \(host ?? "127.0.0.1:\(port)")"] + fields
      + (body.isEmpty ? [] : ["Content-Length: \(body.utf8.count)"])
    return lines.joined(separator: "\r\n") + "\r\n\r\n" + body
  }
}

extension Descriptor {
  /// Reads until the text has some parts in their order, and returns it.
  func text(with parts: [String]) throws -> String {
    var (text, needed) = ("", parts[...])
    while let next = needed.first {
      try wait(self, for: next)
      guard case .bytes(let bytes) = read() else { throw Stuck(description: "the end") }
      text += String(decoding: bytes, as: UTF8.self)
      while let next = needed.first, text.contains(next) { needed.removeFirst() }
    }
    return text
  }
}
