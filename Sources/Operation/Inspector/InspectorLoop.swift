import FoundationEssentials
import Glibc
import ReactiveStreams

/// The thread of an inspector: it accepts peers, reads their commands, and sends them the changes.
///
/// While there are peers, it sends changes ten times a second of real time, because a person looks at
/// them. Without peers it sleeps, and the client collects nothing.
struct InspectorLoop {
  static let peerLimit = 16
  private static let interval = Duration.milliseconds(100)
  /// The number of stores in a message, and of those that are checked for freshness in an interval.
  private static let storeLimit = 500

  private let server: InspectorServer
  private weak let client: OperationClient?
  private let network: ManualNetworkObserver?
  private var catalog: InspectorCatalog
  /// The collecting of changes, while there are peers.
  private var collecting: (reader: OperationTaskID, subscription: OperationSubscription)?
  private var peers: [InspectorPeer] = []
  private var nextTick = ContinuousClock.now
  /// Whether no peer is accepted until the next tick, because there are no descriptors left.
  private var isFull = false

  init(_ server: InspectorServer, _ client: OperationClient) {
    self.server = server
    self.client = client
    network = client.context(for: .query, at: []).networkObserver as? ManualNetworkObserver
    catalog = InspectorCatalog(describer: server.options.describer)
  }

  mutating func run() {
    while true {
      var polled = [
        pollfd(fd: server.end.number, events: Int16(POLLIN), revents: 0),
        pollfd(fd: isFull ? -1 : server.socket.listener.number, events: Int16(POLLIN), revents: 0),
      ]
      polled += peers.map(\.polled)
      if poll(&polled, nfds_t(polled.count), timeout) < 0, errno != EINTR {
        server.cancel(because: "The inspector cannot wait: \(SystemError().text).")
      }
      if let reason = server.endReason {
        for peer in peers { peer.end(reason) }
        return
      }
      for (peer, polled) in zip(peers, polled.dropFirst(2)) { serve(peer, Int32(polled.revents)) }
      removeGonePeers()
      if polled[1].revents != 0 { acceptPeer() }
      if ContinuousClock.now >= nextTick { tick() }
    }
  }

  /// The milliseconds until the next tick; negative for no end.
  private var timeout: Int32 {
    if peers.isEmpty, !isFull { return -1 }
    if peers.contains(where: \.hasCommand) { return 0 }
    let rest = max(nextTick - .now, .zero)
    return Int32((rest.inSeconds * 1_000).rounded(.up))
  }

  private mutating func removeGonePeers() {
    peers.removeAll { $0.isGone && !$0.hasCommand }
    guard peers.isEmpty, collecting != nil else { return }
    collecting = nil
    catalog = InspectorCatalog(describer: server.options.describer)
  }

  private var isOffline: Bool { network?.currentStatus == .disconnected }
}

// MARK: - Peers

extension InspectorLoop {
  /// Accepts one peer, which came before this turn began. So the peers that had left before it came were
  /// removed.
  private mutating func acceptPeer() {
    do throws(SystemError) {
      guard let descriptor = try server.socket.accept() else { return }
      let peer = InspectorPeer(descriptor)
      if InspectorSocket.user(of: descriptor) != server.options.user {
        peer.end("The program belongs to another user.")
      } else if peers.count >= Self.peerLimit {
        peer.end("The inspector has \(Self.peerLimit) connections, and accepts no more.")
      } else {
        peers.append(peer)
        greet(peer)
      }
    } catch {
      isFull = true
      nextTick = .now + Self.interval
    }
  }

  private mutating func greet(_ peer: InspectorPeer) {
    guard let client else { return }
    if collecting == nil {
      collecting = client.hub.events.collectChanges()
      nextTick = .now + Self.interval
    }
    let now = client.clock.now().timeIntervalSince1970
    let options = server.options
    peer.wasOffline = isOffline
    peer.append(
      InspectorHello(
        program: InspectorServer.program, pid: getpid(), name: options.name,
        started: server.started.timeIntervalSince1970, now: now, readOnly: options.isReadOnly,
        canGoOffline: network != nil, isOffline: isOffline))
    let stores = catalog.add(storesOf: client).compactMap { catalog.describe($0, in: client) }
    _ = peer.noteSent(stores)
    peer.send(
      InspectorSnapshot(time: now, counts: OperationStatistics.Counts().byName, stores: stores))
  }

  /// Performs one command, so that each peer is served in each turn.
  private mutating func serve(_ peer: InspectorPeer, _ revents: Int32) {
    if revents & POLLOUT != 0 { peer.flush() }
    if revents & POLLIN != 0 {
      peer.read()
    } else if revents & ~POLLOUT != 0 {
      peer.isGone = true
    }
    if peer.hasCommand, let line = peer.commands.popFirst() { perform(line, of: peer) }
    if peer.lines.isOverLimit, peer.commands.isEmpty {
      peer.end("A line has more than \(peer.lines.limit) bytes.")
    }
  }
}

// MARK: - Changes

extension InspectorLoop {
  private mutating func tick() {
    nextTick = .now + Self.interval
    isFull = false
    guard !peers.isEmpty, let client, let collecting else { return }
    let changes = client.hub.events.changes.take(collecting.reader)
    var update = catalog.update(with: changes, from: client)
    update.changed += catalog.checkFreshness(atMost: Self.storeLimit, in: client)
    for peer in peers {
      peer.counts = peer.counts + changes.counts
      peer.backlog.note(update)
      if peer.hasTakenAll { sendChanges(to: peer, of: client) }
    }
  }

  private mutating func sendChanges(to peer: InspectorPeer, of client: OperationClient) {
    let isOffline = isOffline
    guard !peer.backlog.isEmpty || peer.wasOffline != isOffline else { return }
    peer.wasOffline = isOffline
    let batch = peer.backlog.take(storeLimit: Self.storeLimit)
    let stores = batch.changed.compactMap { catalog.describe($0, in: client) }
    let missed = batch.missed + peer.noteSent(stores)
    peer.send(
      InspectorChanges(
        time: client.clock.now().timeIntervalSince1970,
        counts: peer.counts.byName, stores: stores, removed: batch.removed,
        events: batch.events, missed: missed, isOffline: isOffline))
    if let watched = peer.watched, batch.changed.contains(watched) {
      sendDetail(of: watched, to: peer, of: client)
    }
  }

  private mutating func sendDetail(of id: Int, to peer: InspectorPeer, of client: OperationClient) {
    guard var inspected = catalog.describe(id, in: client),
      let store = catalog.store(id, in: client)
    else { return }
    store.addDetail(to: &inspected, by: catalog.describer)
    peer.send(InspectorDetail(time: client.clock.now().timeIntervalSince1970, store: inspected))
  }
}

// MARK: - Commands

extension InspectorLoop {
  private mutating func perform(_ line: [UInt8], of peer: InspectorPeer) {
    struct Numbered: Decodable { let id: Int }
    let decoder = JSONDecoder()
    guard let command = try? decoder.decode(InspectorCommand.self, from: Data(line)) else {
      let id = (try? decoder.decode(Numbered.self, from: Data(line)))?.id ?? 0
      peer.send(InspectorReply(id: id, ok: false, error: "The line is no command."))
      return
    }
    guard let client else { return }
    let error = perform(command, of: peer, in: client)
    peer.send(InspectorReply(id: command.id ?? 0, ok: error == nil, error: error))
    if error == nil, command.command == "watch", let id = command.store {
      sendDetail(of: id, to: peer, of: client)
    }
  }

  /// Performs a command, and returns why it is refused.
  private mutating func perform(
    _ command: InspectorCommand, of peer: InspectorPeer, in client: OperationClient
  ) -> String? {
    switch command.command {
    case "unwatch":
      peer.watched = nil
      return nil
    case "watch": break
    case "refetch", "invalidate", "reset", "cancel", "clear", "offline":
      if server.options.isReadOnly { return "The inspector is read-only." }
    default: return "There is no command \(command.command.prefix(40))."
    }
    if command.command == "offline" {
      guard let network else { return "The client has no network observer that is set by hand." }
      guard let isOffline = command.value else { return "The command has no value." }
      network.set(isOffline ? .disconnected : .connected)
      return nil
    }
    guard let id = command.store else { return "The command names no store." }
    guard let store = catalog.store(id, in: client) else { return "There is no store \(id)." }
    switch command.command {
    case "watch": peer.watched = id
    case "refetch":
      if store.kind == .mutation { return "A mutation cannot be fetched." }
      Task.detached { _ = try? await store.erasedRun(using: nil) }
    case "invalidate": store.invalidate()
    case "reset": store.resetState(using: nil)
    case "cancel": store.cancel()
    default: client.remove([OpaqueOperationStore(store)])
    }
    return nil
  }
}

extension OperationStatistics.Counts {
  fileprivate var byName: [String: Int] {
    Dictionary(uniqueKeysWithValues: Self.counters.map { ($0.name, self[keyPath: $0.keyPath]) })
  }
}
