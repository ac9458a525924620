import FoundationEssentials
import Operation
import Testing

/// A client where one store meets a fault, and others must not feel it.
struct Neighbourhood: Sendable {
  typealias Store = OperationStore<QueryState<Int, any Error>>

  let clock = ManualClock(now: Date(timeIntervalSince1970: 1_700_000_000))
  let client: OperationClient
  /// Has a value, and somebody observes it.
  let neighbour: Store
  private let subscription: OperationSubscription

  init(defaults: OperationDefaults = .testing) {
    client = OperationClient(defaults: defaults, clock: clock)
    neighbour = client.store(for: Query(path: ["neighbour"]) { _ in 7 }.neverStale())
    neighbour.currentValue = 7
    subscription = neighbour.subscribe { _ in }
  }

  /// Nothing is under way any more, nobody holds anything, and the neighbour is as it was.
  func expectPeace<State>(
    in store: OperationStore<State>, sourceLocation: SourceLocation = #_sourceLocation
  ) async {
    await store.settles(sourceLocation: sourceLocation) { !$0.isLoading && $0.leaseCount == 0 }
    #expect(store.subscriberCount == 0, sourceLocation: sourceLocation)
    var activity = client.activity
    for kind in [OperationKind.query, .pages, .mutation] { activity[kind].failed = 0 }
    #expect(activity == OperationActivity(), sourceLocation: sourceLocation)
    let runs = client.snapshot().stores.flatMap(\.runs)
    #expect(runs.isEmpty, sourceLocation: sourceLocation)
    #expect(clock.sleeperCount == 0, sourceLocation: sourceLocation)
    #expect(neighbour.currentValue == 7, sourceLocation: sourceLocation)
    #expect(neighbour.valueUpdateCount == 1, sourceLocation: sourceLocation)
    #expect(neighbour.error == nil, sourceLocation: sourceLocation)
    #expect(neighbour.subscriberCount == 1, sourceLocation: sourceLocation)
  }
}
