import Operation
import Testing

@Suite("The condition that there is a connection") struct ConnectionConditionTests {
  private let network = ManualNetworkObserver(.disconnected)

  @Test("The condition has the status of the context's observer, and notifies of each change")
  func holds() {
    var context = OperationContext()
    context.networkObserver = network
    let condition = ConnectionRunSpecification.connected
    #expect(!condition.isSatisfied(in: context))
    let changes = Counter()
    let subscription = condition.subscribe(in: context) { changes.increment() }
    network.set(.connected)
    #expect(condition.isSatisfied(in: context) && changes.value == 1)
    #expect(!(!condition).isSatisfied(in: context))
    network.set(.disconnected)
    #expect(!condition.isSatisfied(in: context) && changes.value == 2)
    subscription.cancel()
    #expect(network.subscriberCount == 0)
  }

  @Test("A client's observer is in the context of each store, and a request may set another one")
  func defaults() {
    let other = ManualNetworkObserver()
    let client = OperationClient(
      defaults: OperationDefaults(
        networkObserver: network,
        setup: { context, kind in
          if kind == .mutation { context.networkObserver = other }
        }))
    let query = client.store(for: Query(path: ["q"]) { _ in 1 })
    #expect(query.context.networkObserver as? ManualNetworkObserver === network)
    let mutation = client.store(for: Mutation(path: ["m"]) { (value: Int, _) in value })
    #expect(mutation.context.networkObserver as? ManualNetworkObserver === other)
  }

  @Test("The default observer is that of the client's context, or else that of the system")
  func system() {
    var context = OperationContext()
    #expect(context.networkObserver as? NetlinkNetworkObserver === NetlinkNetworkObserver.shared)
    context.networkObserver = network
    let client = OperationClient(defaults: .testing, context: context)
    let store = client.store(for: Query(path: ["q"]) { _ in 1 })
    #expect(store.context.networkObserver as? ManualNetworkObserver === network)
  }

  @Test("A store that is observed runs again when the connection is restored") func reruns() async {
    let client = OperationClient(
      defaults: OperationDefaults(
        retryLimit: 0, runsAutomatically: false, networkObserver: network))
    let store = client.store(for: Query(path: ["q"]) { _ in 1 }.rerunOnChange(of: .connected))
    var causes = store.events.compactMap { event -> OperationRun.Cause? in
      if case .runEnded(_, let run) = event { run.cause } else { nil }
    }.makeAsyncIterator()
    #expect(network.subscriberCount == 1)
    #expect(store.currentValue == nil && !store.isLoading)
    network.set(.connected)
    #expect(await causes.next() == .rerun)
    #expect(store.currentValue == 1)
  }
}
