import Observation
import Operation
import SharingOperation

extension Catalogue {
  static let wrappers: [Benchmark] = [
    Benchmark(name: "read through @SharedQuery", floor: "@Observable property", limit: 2.5) { _ in
      Pair(
        subject: Work { count in
          let model = SharedModel()
          return timed { for _ in 0..<count { blackHole(model.value) } }
        },
        floor: Work { count in
          let model = PlainModel()
          return timed { for _ in 0..<count { blackHole(model.value) } }
        })
    },
    Benchmark(
      name: "read through @SharedQuery, tracked", floor: "@Observable property, tracked", limit: 2
    ) { _ in
      Pair(
        subject: Work { count in
          let model = SharedModel()
          return tracked(count) { blackHole(model.value) }
        },
        floor: Work { count in
          let model = PlainModel()
          return tracked(count) { blackHole(model.value) }
        })
    },
    Benchmark(
      name: "write, per @SharedQuery", floor: "as many @Observable properties",
      sizes: [1, 100, 10_000], unit: "wrappers", limitsBySize: [1: 10], growth: .flat
    ) { size in
      let (client, store) = Fixtures.store()
      let wrappers = (0..<size).map { _ in SharedQuery(store) }
      for wrapper in wrappers { blackHole(wrapper.wrappedValue) }
      let subject = Work { count in
        let writes = max(1, count / size)
        let cost = timed { for index in 0..<writes { store.currentValue = index } }
        withExtendedLifetime((client, wrappers)) {}
        return cost * Double(count) / Double(writes * size)
      }
      let floor = Work { count in
        let models = (0..<size).map { _ in PlainModel() }
        let writes = max(1, count / size)
        let cost = timed {
          for index in 0..<writes { for model in models { model.value = index } }
        }
        return cost * Double(count) / Double(writes * size)
      }
      return Pair(subject: subject, floor: floor)
    },
  ]

  /// Reads in groups of a thousand, each of which is tracked.
  private static func tracked(_ count: Int, _ read: () -> Void) -> Double {
    timed {
      for start in stride(from: 0, to: count, by: 1_000) {
        withObservationTracking {
          for _ in start..<min(start + 1_000, count) { read() }
        } onChange: {
        }
      }
    }
  }
}

@Observable
private final class SharedModel {
  @ObservationIgnored @SharedQuery<QueryState<Int, any Error>> var value: Int?
  @ObservationIgnored private let client = OperationClient()

  init() {
    _value = SharedQuery(Item(path: ["item"]).neverStale(), client: client)
    $value.withLock { $0 = 1 }
  }
}

@Observable
private final class PlainModel {
  var value: Int? = 1
}
