import FoundationEssentials
import Operation

extension Catalogue {
  static let streams: [Benchmark] = [
    Benchmark(
      name: "state stream, 100k writes", floor: "AsyncStream, bufferingNewest(1)", limit: 1.5
    ) { _ in
      Pair(
        subject: Work(count: 1) { _ in await readStates(writes: 100_000) },
        floor: Work(count: 1) { _ in await readAsyncStream(writes: 100_000) })
    }
  ]

  /// Writes to a store whose states a task reads, until the last one has been read.
  private static func readStates(writes: Int) async -> Double {
    let (client, store) = Fixtures.store()
    let states = store.states
    let reader = Task {
      for await state in states where state.currentValue == -writes { break }
    }
    while store.subscriberCount == 0 { await Task.yield() }
    let cost = await timed {
      for index in 1...writes { store.currentValue = -index }
      await reader.value
    }
    withExtendedLifetime(client) {}
    return cost
  }

  private static func readAsyncStream(writes: Int) async -> Double {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Int.self, bufferingPolicy: .bufferingNewest(1))
    let locked = LockedValue()
    let reader = Task {
      for await value in stream where value == -writes { break }
    }
    continuation.yield(0)
    await Task.yield()
    return await timed {
      for index in 1...writes {
        locked.write(-index)
        continuation.yield(-index)
      }
      await reader.value
    }
  }
}
