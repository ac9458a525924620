import Operation
import Synchronization

extension Catalogue {
  private typealias Event = OperationEvent<QueryState<Int, any Error>>

  static let subscribers: [Benchmark] = [
    Benchmark(
      name: "write, per subscriber", floor: "loop over as many closures",
      sizes: [1, 10, 1_000, 10_000], unit: "subscribers", limit: 2, limitsBySize: [1: 4],
      growth: .flat
    ) { size in
      let closures = (0..<size).map { handler($0) }
      return Pair(subject: delivery(to: size), floor: loop(over: closures))
    },
    Benchmark(
      name: "subscribe and cancel", floor: "Dictionary, insert and remove",
      sizes: [0, 1_000, 10_000], unit: "others", limit: 8, growth: .flat
    ) { size in
      let (client, store) = Fixtures.store()
      let others = (0..<size).map { store.subscribe(handler($0)) }
      let own = handler(-1)
      return Pair(
        subject: .loop(keeping: (client, others)) { _ in
          store.subscribe { event in
            if case .stateChanged(let state) = event { blackHole(state.valueUpdateCount) }
          }
          .cancel()
        },
        floor: Work { count in
          var handlers: [Int: @Sendable (Event) -> Void] = [:]
          for index in 0..<size { handlers[-index] = handler(index) }
          return timed {
            for index in 1...count {
              handlers[index] = own
              handlers[index] = nil
            }
          }
        })
    },
  ]

  @Sendable
  private static func handler(_ index: Int) -> @Sendable (Event) -> Void {
    { event in
      if case .stateChanged(let state) = event { blackHole(state.valueUpdateCount &+ index) }
    }
  }

  /// Returns writes without the cost that they have without subscribers. An operation is a call of
  /// one subscriber.
  private static func delivery(to size: Int) -> Work {
    let (bareClient, bare) = Fixtures.store()
    let (client, store) = Fixtures.store()
    let subscriptions = (0..<size).map { index in
      store.subscribe { event in
        if case .stateChanged(let state) = event { blackHole(state.valueUpdateCount &+ index) }
      }
    }
    return Work { count in
      let writes = max(1, count / size)
      let bareCost = timed { for index in 0..<writes { bare.currentValue = index } }
      let cost = timed { for index in 0..<writes { store.currentValue = index } }
      withExtendedLifetime((bareClient, client, subscriptions)) {}
      return (cost - bareCost) * Double(count) / Double(writes * size)
    }
  }

  private static func loop(over closures: [@Sendable (Event) -> Void]) -> Work {
    let event = Event.stateChanged(Fixtures.store().1.state)
    return Work { count in
      let rounds = max(1, count / closures.count)
      let cost = timed {
        for _ in 0..<rounds { for closure in closures { closure(event) } }
      }
      return cost * Double(count) / Double(rounds * closures.count)
    }
  }
}
