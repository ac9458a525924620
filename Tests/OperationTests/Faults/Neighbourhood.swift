import FoundationEssentials
import Operation
import Testing

/// A client in which one store has a fault that must not affect the others.
struct Neighbourhood: Sendable {
  typealias Store = OperationStore<QueryState<Int, any Error>>

  let clock = ManualClock(now: Date(timeIntervalSince1970: 1_700_000_000))
  let client: OperationClient
  /// A store with a value and a subscriber.
  let neighbour: Store
  private let subscription: OperationSubscription

  init(defaults: OperationDefaults = .testing) {
    client = OperationClient(defaults: defaults, clock: clock)
    neighbour = client.store(for: Query(path: ["neighbour"]) { _ in 7 }.neverStale())
    neighbour.currentValue = 7
    subscription = neighbour.subscribe { _ in }
  }

  /// Waits until no run is in flight. Expects no lease, no subscriber and an unchanged neighbour.
  func expectPeace<State>(
    in store: OperationStore<State>, sourceLocation: SourceLocation = #_sourceLocation
  ) async {
    // The timer of a timeout ends by itself, maybe after the run.
    await store.settles(sourceLocation: sourceLocation) {
      !$0.isLoading && $0.leaseCount == 0 && clock.sleeperCount == 0
    }
    #expect(store.subscriberCount == 0, sourceLocation: sourceLocation)
    var activity = client.activity
    for kind in [OperationKind.query, .pages, .mutation] { activity[kind].failed = 0 }
    #expect(activity == OperationActivity(), sourceLocation: sourceLocation)
    let runs = client.snapshot().stores.flatMap(\.runs)
    #expect(runs.isEmpty, sourceLocation: sourceLocation)
    #expect(neighbour.currentValue == 7, sourceLocation: sourceLocation)
    #expect(neighbour.valueUpdateCount == 1, sourceLocation: sourceLocation)
    #expect(neighbour.error == nil, sourceLocation: sourceLocation)
    #expect(neighbour.subscriberCount == 1, sourceLocation: sourceLocation)
  }
}
