import Foundation
import Glibc
import Testing

@testable import Operation

@Suite("NetlinkNetworkObserver", .serialized) struct NetlinkNetworkObserverTests {
  typealias Status = NetworkConnectionStatus

  static let hasNetlink: Bool = {
    do {
      _ = try NetlinkSocket(NetlinkSocket.open(), groups: 0).ask()
      return true
    } catch {
      print("netlink sockets are not permitted here: \(error)")
      return false
    }
  }()

  private let ledger = SocketLedger()

  private func threadCount() -> Int {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task"))?.count ?? 0
  }

  // MARK: In a network of its own

  private func observer(of namespace: NetworkNamespace) -> NetlinkNetworkObserver {
    NetlinkNetworkObserver { [ledger] in
      ledger.record(namespace.perform { NetlinkSocket.open() })
    }
  }

  @Test(
    "A change of a cable, an interface, an address or a route changes the status",
    .enabled(if: NetworkNamespace.isPermitted, "network namespaces are not permitted here"))
  func changes() async throws {
    let namespace = try NetworkNamespace()
    let observer = observer(of: namespace)
    let log = EventLog<Status>()
    let subscription = observer.subscribe { log.append($0) }
    #expect(observer.currentStatus == .disconnected)
    var expected: [Status] = []
    func expect(
      _ status: Status, sourceLocation: SourceLocation = #_sourceLocation,
      after change: () throws -> Void
    ) async throws {
      try change()
      expected.append(status)
      await log.wait(for: expected.count)
      #expect(log.values == expected, sourceLocation: sourceLocation)
      #expect(observer.currentStatus == status, sourceLocation: sourceLocation)
    }
    func connect() throws {
      try namespace.set(NetworkNamespace.interface, up: true)
      try namespace.setAddress(true)
      try namespace.setDefaultRoute(true)
    }
    try await withWatchdog({ "\(log.values)" }) {
      try namespace.makePair()
      try namespace.set(NetworkNamespace.peer, up: true)
      try await expect(.connected) { try connect() }
      try await expect(.disconnected) { try namespace.set(NetworkNamespace.peer, up: false) }
      try await expect(.connected) { try namespace.set(NetworkNamespace.peer, up: true) }
      try await expect(.disconnected) { try namespace.setDefaultRoute(false) }
      try await expect(.connected) { try namespace.setDefaultRoute(true) }
      // The kernel removes the route, and does not restore it.
      try await expect(.disconnected) { try namespace.set(NetworkNamespace.interface, up: false) }
      try namespace.set(NetworkNamespace.interface, up: true)
      try await expect(.connected) { try namespace.setDefaultRoute(true) }
      try await expect(.disconnected) { try namespace.setAddress(false) }
      try await expect(.connected) { try namespace.setDefaultRoute(true, family: 10) }
      try await expect(.disconnected) { try namespace.removePair() }
    }
    subscription.cancel()
  }

  /// Makes an interface with a default route. The kernel detects its cable some time later.
  private func connect(
    in namespace: NetworkNamespace, for observer: NetlinkNetworkObserver
  ) async throws {
    try namespace.makePair()
    try namespace.set(NetworkNamespace.peer, up: true)
    try namespace.set(NetworkNamespace.interface, up: true)
    try namespace.setAddress(true)
    try namespace.setDefaultRoute(true)
    #expect(await eventually { observer.currentStatus == .connected })
  }

  @Test(
    "Without a subscriber each read queries the kernel, and a new subscriber opens a new socket",
    .enabled(if: NetworkNamespace.isPermitted, "network namespaces are not permitted here"))
  func reads() async throws {
    let namespace = try NetworkNamespace()
    let observer = observer(of: namespace)
    #expect(observer.currentStatus == .disconnected)
    try await connect(in: namespace, for: observer)
    #expect(ledger.openCount == 0)
    for _ in 0..<3 {
      try namespace.set(NetworkNamespace.peer, up: false)
      #expect(await eventually { observer.currentStatus == .disconnected })
      let log = EventLog<Status>()
      let subscription = observer.subscribe { log.append($0) }
      #expect(observer.currentStatus == .disconnected)
      #expect(ledger.openCount == 2, "one for the notifications, and one for the status")
      try namespace.set(NetworkNamespace.peer, up: true)
      await log.wait(for: 1)
      #expect(log.values == [.connected])
      subscription.cancel()
      #expect(await eventually { ledger.openCount == 0 })
    }
    try namespace.removePair()
    #expect(observer.currentStatus == .disconnected)
  }

  @Test(
    "A handler may cancel itself, subscribe and read from inside its call",
    .enabled(if: NetworkNamespace.isPermitted, "network namespaces are not permitted here"))
  func reenters() async throws {
    let namespace = try NetworkNamespace()
    let observer = observer(of: namespace)
    try await connect(in: namespace, for: observer)
    let log = EventLog<String>()
    let held = Monitor<OperationSubscription?>(nil)
    /// Subscribes to one change, and then again to the next one.
    @Sendable func subscribe(_ generation: Int) {
      let new = observer.subscribe { status in
        held.update { $0.take() }?.cancel()
        if generation < 20 { subscribe(generation + 1) }
        log.append("\(generation) \(status) \(observer.currentStatus)")
      }
      held.update { $0 = new }
    }
    subscribe(1)
    try await withWatchdog({ "\(log.values)" }) {
      for generation in 1...20 {
        let status: Status = generation % 2 == 0 ? .connected : .disconnected
        try namespace.set(NetworkNamespace.peer, up: status == .connected)
        await log.wait(for: generation)
        #expect(log.values.last == "\(generation) \(status) \(status)")
      }
      #expect(await eventually { ledger.openCount == 0 })
    }
    try namespace.removePair()
  }

  @Test(
    "While others subscribe and cancel, a subscriber is notified of each change once, in order",
    .enabled(if: NetworkNamespace.isPermitted, "network namespaces are not permitted here"))
  func storm() async throws {
    let namespace = try NetworkNamespace()
    let observer = observer(of: namespace)
    try await connect(in: namespace, for: observer)
    let logs = (0..<2).map { _ in EventLog<Status>() }
    let subscriptions = logs.map { log in observer.subscribe { log.append($0) } }
    try await withWatchdog({ "\(logs.map(\.values))" }) {
      await onThreads(3) { thread in
        for step in 0..<60 {
          let passing = observer.subscribe { _ in _ = observer.currentStatus }
          if thread == 0 {
            try? namespace.set(NetworkNamespace.peer, up: step % 2 == 1)
          }
          passing.cancel()
        }
      }
      try namespace.set(NetworkNamespace.peer, up: false)
      #expect(await eventually { observer.currentStatus == .disconnected })
      #expect(await eventually { logs.allSatisfy { $0.values.last == .disconnected } })
    }
    #expect(logs[0].values == logs[1].values)
    for (index, status) in logs[0].values.enumerated() {
      #expect(status == (index % 2 == 0 ? .disconnected : .connected))
    }
    for subscription in subscriptions { subscription.cancel() }
    #expect(await eventually { ledger.openCount == 0 })
    try namespace.removePair()
  }

  @Test(
    "When its socket fails, the status is connected until the last subscription ends",
    .enabled(if: NetworkNamespace.isPermitted, "network namespaces are not permitted here"))
  func failsLater() async throws {
    let namespace = try NetworkNamespace()
    let socket = Monitor<Int32>(-1)
    let observer = NetlinkNetworkObserver { [ledger] in
      let descriptor = ledger.record(namespace.perform { NetlinkSocket.open() })
      // The first one receives the notifications.
      socket.update { if $0 < 0 { $0 = descriptor } }
      return descriptor
    }
    let log = EventLog<Status>()
    let subscription = observer.subscribe { log.append($0) }
    #expect(observer.currentStatus == .disconnected)
    // The next read finds a file that is no socket.
    let file = open("/dev/null", O_RDONLY)
    #expect(dup2(file, socket.value) == socket.value)
    close(file)
    try namespace.makePair()
    await log.wait(for: 1)
    #expect(log.values == [.connected] && observer.currentStatus == .connected)
    let late = observer.subscribe { log.append($0) }
    #expect(observer.currentStatus == .connected)
    subscription.cancel()
    #expect(observer.currentStatus == .connected)
    late.cancel()
    #expect(observer.currentStatus == .disconnected && log.count == 1)
    observer.subscribe { log.append($0) }.cancel()
    #expect(await eventually { ledger.openCount == 0 })
    #expect(log.count == 1)
    try namespace.removePair()
  }

  @Test(
    "A change whose notifications the kernel has dropped is found",
    .enabled(if: NetworkNamespace.isPermitted, "network namespaces are not permitted here"))
  func dropped() async throws {
    let namespace = try NetworkNamespace()
    let observer = observer(of: namespace)
    let socket = try NetlinkSocket(
      namespace.perform { NetlinkSocket.open() }, groups: NetlinkSocket.changes)
    try await connect(in: namespace, for: observer)
    try namespace.setAddress(false)
    #expect(try socket.readNotifications())
    #expect(try !socket.readNotifications())
    #expect(observer.currentStatus == .disconnected)
    // The kernel uses the least possible size.
    var size: Int32 = 1
    try #require(setsockopt(socket.descriptor.number, SOL_SOCKET, SO_RCVBUF, &size, 4) == 0)
    // A new address cannot change the status, but the default routes after it can.
    try namespace.setAddress(true)
    for isPresent in [true, false, true] { try namespace.setDefaultRoute(isPresent) }
    #expect(observer.currentStatus == .connected)
    #expect(try socket.readNotifications())
    #expect(try !socket.readNotifications())
    try namespace.removePair()
  }

  // MARK: In the network of the process

  @Test(
    "Ten thousand subscriptions leave no descriptor, no thread and no object behind",
    .enabled(if: hasNetlink, "netlink sockets are not permitted here"))
  func leavesNothing() async {
    let threads = threadCount()
    let handlers = LiveCount()
    weak var released: NetlinkNetworkObserver?
    do {
      let observer = NetlinkNetworkObserver { [ledger] in ledger.record(NetlinkSocket.open()) }
      released = observer
      @Sendable func subscribe() -> OperationSubscription {
        let probe = handlers.makeProbe()
        return observer.subscribe { _ in withExtendedLifetime(probe) {} }
      }
      // In order, concurrently, and all at once.
      for _ in 0..<4000 { subscribe().cancel() }
      await onThreads(4) { _ in for _ in 0..<500 { subscribe().cancel() } }
      let all = (0..<4000).map { _ in subscribe() }
      #expect(handlers.value == 4000)
      for subscription in all { subscription.cancel() }
      #expect(handlers.value == 0)
    }
    #expect(await eventually { released == nil })
    #expect(await eventually { ledger.openCount == 0 })
    // The runtime retains some threads for its queues.
    #expect(threadCount() < threads + 100)
  }

  @Test(
    "Each time the last subscription ends, its socket is closed",
    .enabled(if: hasNetlink, "netlink sockets are not permitted here"))
  func closes() async {
    let observer = NetlinkNetworkObserver { [ledger] in ledger.record(NetlinkSocket.open()) }
    for count in 1...300 {
      observer.subscribe { _ in }.cancel()
      #expect(await eventually { ledger.openCount == 0 })
      // One for the notifications, and one for the status.
      #expect(ledger.madeCount == 2 * count)
    }
  }

  @Test("Without a socket the status is connected, which is reported once")
  func unobservable() async {
    let observer = NetlinkNetworkObserver { -1 }
    let (issues, _) = await issues {
      #expect(observer.currentStatus == .connected)
      let subscriptions = (0..<3).map { _ in observer.subscribe { _ in } }
      #expect(observer.currentStatus == .connected)
      for subscription in subscriptions { subscription.cancel() }
      observer.subscribe { _ in }.cancel()
      #expect(observer.currentStatus == .connected)
    }
    #expect(issues.map(\.kind) == [.unobservableNetwork])
  }

  @Test("While a subscription has no socket, the status is connected")
  func unobservableWhileSubscribed() async {
    let opened = Monitor(0)
    let observer = NetlinkNetworkObserver {
      opened.update { $0 += 1 }
      return -1
    }
    let (issues, _) = await issues {
      let log = EventLog<Status>()
      let subscriptions = (0..<2).map { _ in observer.subscribe { log.append($0) } }
      for subscription in subscriptions {
        #expect(observer.currentStatus == .connected && opened.value == 1)
        subscription.cancel()
      }
      #expect(observer.currentStatus == .connected && opened.value == 2)
      observer.subscribe { log.append($0) }.cancel()
      #expect(opened.value == 3 && log.count == 0)
    }
    #expect(issues.map(\.kind) == [.unobservableNetwork])
  }

  @Test("A descriptor that is no netlink socket is closed") func useless() async {
    let observer = NetlinkNetworkObserver { socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0) }
    let files = { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd"))?.count }
    let before = files() ?? 0
    let (issues, _) = await issues {
      for _ in 0..<1000 { #expect(observer.currentStatus == .connected) }
    }
    #expect(issues.count == 1)
    #expect((files() ?? 0) < before + 500)
  }
}
