import Observation
import Operation
import SharingOperation

extension Catalogue {
  static let wrappers: [Benchmark] = [
    Benchmark(name: "read through @SharedQuery", floor: "@Observable property", limit: 2) { _ in
      Pair(
        subject: Work { count in
          let model = SharedModel()
          return timed { for _ in 0..<count { Sink.take(model.value) } }
        },
        floor: Work { count in
          let model = PlainModel()
          return timed { for _ in 0..<count { Sink.take(model.value) } }
        })
    },
    Benchmark(
      name: "read through @SharedQuery, tracked", floor: "@Observable property, tracked", limit: 2
    ) { _ in
      Pair(
        subject: Work { count in
          let model = SharedModel()
          return tracked(count) { Sink.take(model.value) }
        },
        floor: Work { count in
          let model = PlainModel()
          return tracked(count) { Sink.take(model.value) }
        })
    },
  ]

  /// Reads within trackings of a thousand reads each.
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
