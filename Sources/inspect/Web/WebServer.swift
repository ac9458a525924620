import Glibc

/// Serves the page of `--web` on the loopback address, on one thread.
///
/// Each open page has a connection of its own to the program. A page that reads slowly is not read
/// for either, so the program leaves out changes, as for any slow inspector.
final class WebServer {
  private static let connectionLimit = 64
  private static let searchInterval = 0.25
  /// The time between two empty messages, which detect a page that is gone, in seconds.
  private static let heartbeat = 15.0

  private let target: Target
  private let waits: Bool
  private let listener: Descriptor
  private let gate: WebGate
  /// The socket that was connected last.
  private var last: UsedSocket
  private var connections: [WebConnection] = []
  /// Whether there was no descriptor for a connection, which is then accepted later.
  private var isFull = false
  private var lastStream = 0
  private var nextSearch = 0.0
  private var nextHeartbeat = Time.monotonic + heartbeat

  init(arguments: Arguments, target: Target, socket: UsedSocket) throws(InspectError) {
    self.target = target
    last = socket
    waits = arguments.waits
    (listener, gate) = try Self.listen(on: arguments.port)
  }

  private static func listen(on port: UInt16) throws(InspectError) -> (Descriptor, WebGate) {
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let listener = Descriptor(owning: socket(AF_INET, kind, 0))
    var (yes, size) = (Int32(1), socklen_t(MemoryLayout<sockaddr_in>.size))
    setsockopt(listener.number, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    address.sin_port = port.bigEndian
    let isOpen = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener.number, $0, size) == 0 && Glibc.listen(listener.number, 16) == 0
          && getsockname(listener.number, $0, &size) == 0
      }
    }
    guard isOpen else { throw .system("port \(port)") }
    return (listener, WebGate(port: UInt16(bigEndian: address.sin_port)))
  }

  /// Prints the address, and serves until a signal ends the process.
  func run() throws(InspectError) {
    let signals = try Signals([SIGINT, SIGTERM, SIGHUP])
    StandardStreams.output("\(gate.address)\n")
    while true {
      var poll = Poll()
      poll.add(signals.descriptor)
      if !isFull { poll.add(listener) }
      for connection in connections { connection.add(to: &poll) }
      let isSearching = waits && connections.contains { $0.hasLostProgram }
      poll.wait(isSearching || isFull ? Self.searchInterval : 5)
      isFull = false
      if poll.canRead(signals.descriptor), !signals.received().isEmpty { return }
      for connection in connections { serve(connection, poll) }
      connections.removeAll { $0.isClosed }
      if poll.canRead(listener) { accept() }
      search()
    }
  }

  private func accept() {
    let number = Glibc.accept(listener.number, nil, nil)
    guard number >= 0 else {
      isFull = true
      return
    }
    let descriptor = Descriptor(owning: number)
    _ = fcntl(number, F_SETFD, FD_CLOEXEC)
    descriptor.setNonBlocking()
    if connections.count >= Self.connectionLimit {
      // The oldest one that has asked for nothing makes room.
      guard let oldest = connections.firstIndex(where: { !$0.isStream }) else { return }
      connections.remove(at: oldest)
    }
    connections.append(WebConnection(descriptor))
  }

  private func serve(_ connection: WebConnection, _ poll: Poll) {
    if poll.canWrite(connection.descriptor) { connection.flush() }
    if let program = connection.program {
      program.flush()
      if poll.canRead(program.descriptor) { connection.forward(waits: waits) }
    }
    guard poll.canRead(connection.descriptor) else { return }
    switch connection.readRequest() {
    case .incomplete: break
    case .refused(let status): connection.answer(HTTPResponse(status: status))
    case .request(let request): answer(request, on: connection)
    }
  }

  private func answer(_ request: HTTPRequest, on connection: WebConnection) {
    switch gate.decide(request) {
    case .page: connection.answer(Page.response())
    case .events:
      beginStream(on: connection)
      connection.connect(to: last.path, waits: waits)
    case .command(let command, let id, let stream):
      let program = connections.first { $0.stream == stream }?.program
      program?.send(command, id: id)
      connection.answer(HTTPResponse(status: program == nil ? 409 : 204))
    case .refused(let status): connection.answer(HTTPResponse(status: status))
    }
  }

  private func beginStream(on connection: WebConnection) {
    lastStream += 1
    connection.beginStream(lastStream)
  }

  /// Looks for the next start of the program, for the pages that have lost it.
  private func search() {
    let now = Time.monotonic
    if now >= nextHeartbeat {
      nextHeartbeat = now + Self.heartbeat
      for connection in connections where connection.isStream { connection.send(comment: "") }
    }
    guard waits, now >= nextSearch else { return }
    nextSearch = now + Self.searchInterval
    let lost = connections.filter { $0.hasLostProgram }
    guard let first = lost.first, let link = target.connect(after: last) else { return }
    last = link.socket
    for connection in lost { beginStream(on: connection) }
    first.connect(to: link.connection, waits: waits)
    for connection in lost.dropFirst() { connection.connect(to: last.path, waits: waits) }
  }
}
