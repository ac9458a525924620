/// The machine of a netlink socket: it asks for all links and then all routes, and finds out from
/// the notifications when to ask anew.
///
/// A notification is only a hint. The kernel drops and replaces routes without a word, such as those
/// of IPv4 through an interface that goes down or loses its address, so that a copy that follows the
/// notifications goes wrong.
struct NetlinkMachine: Sendable {
  /// What to do after a datagram.
  struct Output: Equatable {
    var request: [UInt8]?
    var status: NetworkConnectionStatus?
    var hasFailed = false
  }

  private enum Phase: Sendable {
    /// The answer with the links is under way, or the one with the routes.
    case links, routes
    /// What is known is complete.
    case listening
  }

  private static let up: UInt32 = 0x1
  private static let loopback: UInt32 = 0x8
  private static let running: UInt32 = 0x40
  /// How often the kernel is asked where its answers are disturbed.
  private static let roundLimit = 3

  private var phase = Phase.listening
  private var sequence: UInt32 = 0
  private var round = 0
  /// Something changed while the kernel answered.
  private var isInterrupted = false
  /// A notification came while the kernel answered.
  private var isOutdated = false
  /// Notifications were lost since there was nothing to read.
  private var isOverrun = false
  private var links: [Int32: UInt32] = [:]
  private var routes: [NetlinkMessage.DefaultRoute] = []

  /// The first request, to which all else follows.
  mutating func begin() -> [UInt8] {
    round = 0
    return beginRound()
  }

  mutating func receive(_ datagram: [UInt8]) -> Output {
    var output = Output()
    for message in NetlinkMessage.all(in: datagram) {
      if message.isAnswer {
        if phase != .listening, message.sequence == sequence { take(message, &output) }
      } else if matters(message) {
        notice(&output)
      }
    }
    return output
  }

  /// Notifications were lost. The kernel goes on dropping them, without another word, until all that it
  /// has put up has been read: only what is asked for then is complete.
  mutating func overrun() {
    isOverrun = true
  }

  /// Nothing is left to read.
  mutating func drained() -> Output {
    var output = Output()
    if isOverrun { notice(&output) }
    isOverrun = false
    return output
  }

  private mutating func take(_ message: NetlinkMessage, _ output: inout Output) {
    if message.isInterrupted { isInterrupted = true }
    switch message.kind {
    case .newLink:
      if let link = message.link { links[link.index] = Self.relevant(link.flags) }
    case .newRoute:
      if let route = message.defaultRoute, route.isUnicast { routes.append(route) }
    case .done where message.errorCode == 0: finish(&output)
    case .done, .error:
      if round < Self.roundLimit { output.request = beginRound() } else { output.hasFailed = true }
    default: break
    }
  }

  /// One answer is complete.
  private mutating func finish(_ output: inout Output) {
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

  private mutating func notice(_ output: inout Output) {
    if phase == .listening { output.request = begin() } else { isOutdated = true }
  }

  /// Whether a notification can be about the way out.
  private func matters(_ message: NetlinkMessage) -> Bool {
    switch message.kind {
    case .newLink: message.link.map { links[$0.index] != Self.relevant($0.flags) } ?? false
    case .newRoute, .deletedRoute: message.defaultRoute != nil
    // An address that comes brings no default route without saying so.
    case .deletedLink, .deletedAddress, .overrun: true
    default: false
    }
  }

  private var status: NetworkConnectionStatus {
    let usable = links.filter { $0.value == Self.up | Self.running }
    let hasWay = routes.contains { route in
      route.interfaces.isEmpty
        ? !usable.isEmpty : route.interfaces.contains { usable[$0] != nil }
    }
    return hasWay ? .connected : .disconnected
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

  private static func relevant(_ flags: UInt32) -> UInt32 { flags & (up | loopback | running) }
}
