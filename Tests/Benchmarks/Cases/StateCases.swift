import FoundationEssentials
import Operation
import Synchronization

extension Catalogue {
  private typealias Status = OperationStatus<Int, any Error>

  static let states: [Benchmark] = [
    reading("read currentValue", { blackHole($0.currentValue) }) {
      let value = Mutex<Int?>(1)
      return .loop { _ in blackHole(value.withLock { $0 }) }
    },
    reading("read status", { blackHole($0.status.isSuccess ? 1 : 0) }) {
      let status = Mutex(Status.result(.success(1)))
      return .loop { _ in blackHole(status.withLock { $0 }.isSuccess ? 1 : 0) }
    },
    reading("read isLoading", { blackHole($0.isLoading ? 1 : 0) }) {
      let isLoading = Mutex(false)
      return .loop { _ in blackHole(isLoading.withLock { $0 } ? 1 : 0) }
    },
    Benchmark(
      name: "write without subscribers", floor: "write under a Mutex, Date()", limit: 3
    ) { _ in
      let (client, store) = Fixtures.store()
      let value = LockedValue()
      return Pair(
        subject: .loop(keeping: client) { store.currentValue = $0 },
        floor: .loop { value.write($0) })
    },
    Benchmark(name: "optimistic edit, confirmed", floor: "two writes", limit: 5) { _ in
      let (client, store) = Fixtures.store()
      return Pair(
        subject: .loop(keeping: client) { _ in
          await store.optimistically {
            $0 = 2
          } while: {
            await nothing()
          }
        },
        floor: .loop { index in
          store.currentValue = index
          store.currentValue = index + 1
        })
    },
  ]

  private static func nothing() async {}

  private static func reading(
    _ name: String,
    _ read: @escaping @Sendable (OperationStore<QueryState<Int, any Error>>) -> Void,
    floor: @escaping @Sendable () -> Work
  ) -> Benchmark {
    Benchmark(name: name, floor: "the same under a Mutex", limit: 2.5) { _ in
      let (client, store) = Fixtures.store()
      return Pair(
        subject: .loop(keeping: client) { _ in read(store) }, floor: floor())
    }
  }
}
