import Operation
import Testing

@Suite("ManualNetworkObserver") struct ManualNetworkObserverTests {
  typealias Status = NetworkConnectionStatus

  @Test("The observer notifies of every change in order, and of no repeat") func changes() {
    let network = ManualNetworkObserver()
    #expect(network.currentStatus == .connected)
    let log = EventLog<Status>()
    let subscription = network.subscribe { log.append($0) }
    for status: Status in [.connected, .disconnected, .disconnected, .connected] {
      network.set(status)
      #expect(network.currentStatus == status)
    }
    #expect(log.values == [.disconnected, .connected])
    subscription.cancel()
    network.set(.disconnected)
    #expect(log.count == 2 && network.subscriberCount == 0)
    #expect(ManualNetworkObserver(.disconnected).currentStatus == .disconnected)
  }

  @Test("A handler may read, set, subscribe and cancel itself") func reenters() {
    let network = ManualNetworkObserver()
    let log = EventLog<String>()
    let subscriptions = Monitor<[OperationSubscription]>([])
    let first = network.subscribe { status in
      log.append("first \(status) \(network.currentStatus)")
      let inner = network.subscribe { log.append("inner \($0)") }
      let own = subscriptions.update { subscriptions in
        defer { subscriptions = [inner] }
        return subscriptions
      }
      for subscription in own { subscription.cancel() }
      network.set(.connected)
    }
    subscriptions.update { $0 = [first] }
    network.set(.disconnected)
    #expect(log.values == ["first disconnected disconnected", "inner connected"])
    #expect(network.subscriberCount == 1)
  }

  @Test("All subscribers get the changes of several threads in one order that ends with the status")
  func threads() async {
    let network = ManualNetworkObserver()
    let logs = (0..<2).map { _ in EventLog<Status>() }
    let subscriptions = logs.map { log in network.subscribe { log.append($0) } }
    await onThreads(4) { thread in
      for step in 0..<500 { network.set((thread + step) % 2 == 0 ? .connected : .disconnected) }
    }
    let all = logs.map(\.values)
    #expect(all[0] == all[1])
    #expect(zip(all[0], all[0].dropFirst()).allSatisfy { $0 != $1 })
    #expect(all[0].last ?? .connected == network.currentStatus)
    for subscription in subscriptions { subscription.cancel() }
  }
}
