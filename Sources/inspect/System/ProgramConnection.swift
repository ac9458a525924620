import Glibc

/// The connection to a program's inspector socket.
///
/// It never blocks: what the program does not read at once is written later.
final class ProgramConnection {
  let descriptor: Descriptor
  private var input = LineBuffer()
  private var output: [UInt8] = []
  /// The lines that were read, and that nobody has taken.
  private var lines: [[UInt8]] = []
  /// Whether the program has closed the connection.
  private(set) var isEnded = false
  private var lastCommand = 0

  /// Connects to a socket.
  init(path: String) throws(InspectError) {
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = Descriptor(owning: socket(AF_UNIX, kind, 0))
    // A blocking `connect` would wait for a stopped program whose queue of connections is full.
    descriptor.setNonBlocking()
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    let room = MemoryLayout.size(ofValue: address.sun_path)
    guard bytes.count < room else { throw InspectError("\(path): the path is too long") }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor.number, $0, size) }
    }
    guard result == 0 else { throw .system(path) }
    self.descriptor = descriptor
  }

  var hasOutput: Bool { !output.isEmpty }

  /// Reads what the program has sent, and returns the complete lines.
  func readLines() -> [[UInt8]] {
    fill()
    defer { lines = [] }
    return lines
  }

  private func fill() {
    // A limit, so that a program that sends without a pause does not keep the keys waiting.
    for _ in 0..<64 {
      let read = descriptor.read()
      if read == .end { isEnded = true }
      guard case .bytes(let bytes) = read else { return }
      input.append(bytes)
      while let line = input.next() { lines.append(Array(line)) }
      if input.isOverLimit {
        isEnded = true
        return
      }
    }
  }

  /// Sends a command, and returns its number, which the reply repeats.
  @discardableResult
  func send(_ command: InspectorCommand, id: Int? = nil) -> Int {
    lastCommand = id ?? lastCommand + 1
    output += Array((command.line(id: lastCommand) + "\n").utf8)
    flush()
    return lastCommand
  }

  /// Writes as much as the program takes.
  func flush() {
    while !output.isEmpty {
      guard let count = descriptor.write(output) else {
        output = []
        return
      }
      if count == 0 { return }
      output.removeFirst(count)
    }
  }

  /// Ends the connection.
  func close() {
    shutdown(descriptor.number, Int32(SHUT_RDWR))
    isEnded = true
  }

  /// Waits for the next line, and returns it.
  ///
  /// - Returns: `nil` if the program has closed the connection, or has sent none at the monotonic time
  ///   `deadline`.
  func nextLine(before deadline: Double?) -> [UInt8]? {
    waitForLine(before: deadline) ? lines.removeFirst() : nil
  }

  /// Waits for the first message of the program, which a later call returns as a line.
  func firstMessage(before deadline: Double) -> ServerMessage? {
    waitForLine(before: deadline) ? try? ServerMessage(line: lines[0]) : nil
  }

  private func waitForLine(before deadline: Double?) -> Bool {
    while lines.isEmpty {
      if isEnded { return false }
      let rest = deadline.map { $0 - Time.monotonic }
      var poll = Poll()
      poll.add(descriptor, write: hasOutput)
      poll.wait(rest.map { max($0, 0) })
      flush()
      if poll.canRead(descriptor) {
        fill()
      } else if let rest, rest <= 0 {
        return false
      }
    }
    return true
  }
}
