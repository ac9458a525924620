/// The machine of a netlink socket: it requests all links, then all routes, and then determines from
/// the notifications of the kernel when to request both again.
///
/// A notification is only a hint. The kernel removes and replaces some routes without one, such as
/// the IPv4 routes through an interface that goes down or loses its address. So a copy that applies
/// the notifications becomes wrong.
struct NetlinkMachine: Sendable {
  /// What the socket does after a datagram.
  struct Output: Equatable {
    var request: [UInt8]?
    var status: NetworkConnectionStatus?
    var hasFailed = false
  }

  private enum Phase: Sendable {
    /// The answer that is in progress.
    case links, routes
    /// The links and the routes are complete.
    case listening
  }

  /// The number of requests for links and routes after which a disturbed answer is accepted, and an
  /// error is a failure.
  private static let roundLimit = 3

  private var phase = Phase.listening
  private var sequence: UInt32 = 0
  private var round = 0
  /// The kernel has marked the answer in progress as inconsistent.
  private var isInterrupted = false
  /// A notification arrived during the answer in progress.
  private var isOutdated = false
  /// Notifications were lost since the socket was last empty.
  private var isOverrun = false
  /// Whether each interface is usable.
  private var links: [Int32: Bool] = [:]
  private var routes: [NetlinkMessage.DefaultRoute] = []

  /// Returns the first request.
  mutating func begin() -> [UInt8] {
    round = 0
    return beginRound()
  }

  mutating func receive(_ datagram: [UInt8]) -> Output {
    var output = Output()
    for message in NetlinkMessage.all(in: datagram) {
      if message.isAnswer {
        if phase != .listening, message.sequence == sequence { add(message, &output) }
      } else if canChangeStatus(message) {
        noteChange(&output)
      }
    }
    return output
  }

  /// Notes that notifications were lost.
  ///
  /// The kernel drops notifications, without another error, until everything in the socket has been
  /// read. So only an answer that is requested after that is complete.
  mutating func overrun() { isOverrun = true }

  /// Called when everything in the socket has been read.
  mutating func drained() -> Output {
    var output = Output()
    if isOverrun { noteChange(&output) }
    isOverrun = false
    return output
  }

  /// Adds a message to the answer in progress.
  private mutating func add(_ message: NetlinkMessage, _ output: inout Output) {
    if message.isInterrupted { isInterrupted = true }
    switch message.kind {
    case .newLink:
      if let link = message.link { links[link.index] = link.isUsable }
    case .newRoute:
      if let route = message.defaultRoute, route.isUnicast { routes.append(route) }
    case .done where message.errorCode == 0: finishAnswer(&output)
    case .done, .error:
      if round < Self.roundLimit { output.request = beginRound() } else { output.hasFailed = true }
    default: break
    }
  }

  private mutating func finishAnswer(_ output: inout Output) {
    if phase == .links {
      phase = .routes
      output.request = request(.getRoute)
    } else if isInterrupted || isOutdated, round < Self.roundLimit {
      output.request = beginRound()
    } else {
      phase = .listening
      output.status = status
      if isOutdated { output.request = begin() }
    }
  }

  private mutating func noteChange(_ output: inout Output) {
    if phase == .listening { output.request = begin() } else { isOutdated = true }
  }

  /// Returns a Boolean value that indicates whether the status may differ after a notification.
  private func canChangeStatus(_ message: NetlinkMessage) -> Bool {
    switch message.kind {
    case .newLink: message.link.map { links[$0.index] != $0.isUsable } ?? false
    case .newRoute, .deletedRoute: message.defaultRoute != nil
    // A new address is not among them: a default route that follows it has its own notification.
    case .deletedLink, .deletedAddress, .overrun: true
    default: false
    }
  }

  private var status: NetworkConnectionStatus {
    let isConnected = routes.contains { route in
      route.interfaces.isEmpty
        ? links.values.contains(true) : route.interfaces.contains { links[$0] == true }
    }
    return isConnected ? .connected : .disconnected
  }

  private mutating func beginRound() -> [UInt8] {
    round += 1
    (isInterrupted, isOutdated) = (false, false)
    (links, routes) = ([:], [])
    phase = .links
    return request(.getLink)
  }

  private mutating func request(_ kind: NetlinkMessage.Kind) -> [UInt8] {
    sequence &+= 1
    return NetlinkMessage.request(kind, sequence: sequence)
  }
}
