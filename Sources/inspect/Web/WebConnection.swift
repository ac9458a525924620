import Glibc

/// A connection of a browser: a request and its answer, or a stream of events.
final class WebConnection {
  /// The bytes that may wait for a page before its program is read no further.
  private static let outputLimit = 1 << 20

  let descriptor: Descriptor
  private(set) var program: ProgramConnection?
  /// The number of the stream; commands name it.
  private(set) var stream: Int?
  private(set) var isClosed = false
  private var input: [UInt8] = []
  private var output: [UInt8] = []
  /// Whether the connection ends when the output is written.
  private var isEnding = false

  init(_ descriptor: Descriptor) { self.descriptor = descriptor }

  var isStream: Bool { stream != nil }
  var hasLostProgram: Bool { isStream && program == nil && !isClosed }

  func add(to poll: inout Poll) {
    poll.add(descriptor, write: !output.isEmpty)
    if let program {
      poll.add(
        program.descriptor, write: program.hasOutput, read: output.count < Self.outputLimit)
    }
  }

  /// Reads more of the request. A stream and an answered connection read only to find their end.
  func readRequest() -> HTTPRequest.Parsing {
    switch descriptor.read() {
    case .nothing: return .incomplete
    case .end:
      isClosed = true
      return .incomplete
    case .bytes(let bytes):
      guard !isStream, !isEnding else { return .incomplete }
      input += bytes
      return HTTPRequest.parse(input)
    }
  }

  func answer(_ response: HTTPResponse) {
    output += response.encoded()
    isEnding = true
    flush()
  }

  /// Begins the messages of a program, under a number of their own, so that a command for a store of an
  /// earlier program is refused.
  func beginStream(_ number: Int) {
    if !isStream {
      output += HTTPResponse(status: 200, type: "text/event-stream").encoded(isStream: true)
    }
    stream = number
    send(#"{"type":"stream","id":\#(number)}"#)
  }

  /// Connects to the program. The page gets its messages as they are.
  func connect(to path: String, waits: Bool) {
    program = try? ProgramConnection(path: path)
    if program == nil { sendEnd(waits: waits) }
  }

  /// Takes a connection. Its greeting may have been read to find the program.
  func connect(to program: ProgramConnection, waits: Bool) {
    self.program = program
    forward(waits: waits)
  }

  /// Forwards the lines that the program has sent.
  func forward(waits: Bool) {
    guard let program else { return }
    for line in program.readLines() {
      output += Array("data: ".utf8) + line + Array("\n\n".utf8)
    }
    if program.isEnded {
      self.program = nil
      sendEnd(waits: waits)
    }
    flush()
  }

  private func sendEnd(waits: Bool) { send(#"{"type":"ended","waits":\#(waits)}"#) }

  private func send(_ line: String) {
    output += Array("data: \(line)\n\n".utf8)
    flush()
  }

  /// Sends a line that the page ignores.
  func send(comment: String) {
    output += Array(":\(comment)\n\n".utf8)
    flush()
  }

  func flush() {
    var written = 0
    while written < output.count {
      let part = output[written..<min(written + 65_536, output.count)]
      guard let count = descriptor.write(part) else {
        isClosed = true
        return
      }
      if count == 0 { break }
      written += count
    }
    output.removeFirst(written)
    // The browser closes. To close with unread input would discard what it has not received yet.
    if isEnding, output.isEmpty { shutdown(descriptor.number, Int32(SHUT_WR)) }
  }
}
