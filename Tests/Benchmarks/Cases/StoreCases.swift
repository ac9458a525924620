import Operation
import Synchronization

extension Catalogue {
  static let stores: [Benchmark] = [
    Benchmark(
      name: "lookup by path", floor: "Dictionary, same paths", sizes: [1_000, 10_000, 100_000],
      unit: "stores", limit: 3, growth: .flat
    ) { size in
      let (items, client) = filled(size)
      let keys = Fixtures.paths(size).shuffled()
      return Pair(
        subject: .loop { blackHole(client.store(with: keys[$0 % size])?.base) },
        floor: dictionary(of: items, keys: keys))
    },
    Benchmark(
      name: "lookup by request", floor: "Dictionary, same paths", sizes: [1_000, 10_000, 100_000],
      unit: "stores", limit: 3, growth: .flat
    ) { size in
      let (items, client) = filled(size)
      let keys = Fixtures.items(size).shuffled()
      return Pair(
        subject: .loop { blackHole(client.store(for: keys[$0 % size])) },
        floor: dictionary(of: items, keys: keys.map(\.path)))
    },
    Benchmark(
      name: "creation", floor: "Mutex in a class, Dictionary", sizes: [1_000, 10_000, 100_000],
      unit: "stores", limit: 8, growth: .flat
    ) { size in
      let items = Fixtures.items(size)
      return Pair(
        subject: Work(count: size) { _ in
          let client = OperationClient()
          let cost = timed { for item in items { blackHole(client.store(for: item)) } }
          withExtendedLifetime(client) {}
          return cost
        },
        floor: Work(count: size) { _ in
          var values: [OperationPath: LockedValue] = [:]
          let cost = timed { for item in items { values[item.path] = LockedValue() } }
          blackHole(values.count)
          return cost
        })
    },
    Benchmark(
      name: "stores(matching:), 100 members", floor: "copy and iterate an array of 100",
      sizes: [1_000, 10_000, 100_000], unit: "stores", limit: 6, growth: .flat
    ) { size in
      let client = Fixtures.client(Fixtures.items(size, group: 100))
      let prefixes = (0..<size / 100).map { ["items", $0] as OperationPath }
      // All groups, so that both read stores that the processor has not cached.
      let groups = prefixes.map { client.stores(matching: $0).map(\.base) }
      return Pair(
        subject: .loop { index in
          for store in client.stores(matching: prefixes[index % prefixes.count]) {
            blackHole(store.base)
          }
        },
        floor: .loop { index in
          var copy: [any Sendable & AnyObject] = []
          copy.append(contentsOf: groups[index % groups.count])
          for member in copy { blackHole(member) }
        })
    },
    Benchmark(
      name: "invalidation of all stores", floor: "a Mutex in each value of a Dictionary",
      sizes: [1_000, 10_000, 100_000], unit: "stores", growth: .flat
    ) { size in
      invalidation(of: filled(size).client, size)
    },
    Benchmark(
      name: "invalidation of all stores, one is read",
      floor: "a Mutex in each value of a Dictionary",
      sizes: [1_000, 10_000, 100_000], unit: "stores", growth: .flat
    ) { size in
      let (items, client) = filled(size)
      let reader = Query<Int, any Error>(path: ["reader"]) { try await $0.ensure(items[0]) }
      blackHole(try await client.fetch(reader))
      return invalidation(of: client, size)
    },
    Benchmark(
      name: "clearing, 100 stores at a time", floor: "Dictionary, same paths",
      sizes: [1_000, 10_000, 100_000], unit: "stores", growth: .flat
    ) { size in
      let items = Fixtures.items(size, group: 100)
      let prefixes = (0..<size / 100).map { ["items", $0] as OperationPath }
      return Pair(
        subject: Work(count: size) { _ in
          let client = Fixtures.client(items)
          return timed { for prefix in prefixes { client.clearStores(matching: prefix) } }
        },
        floor: Work(count: size) { _ in
          var values = Dictionary(uniqueKeysWithValues: items.map { ($0.path, LockedValue()) })
          return timed { for item in items { values[item.path] = nil } }
        })
    },
  ]

  /// Returns writes to the locked values of a dictionary, one after the other.
  ///
  /// They are as large as stores, and visited in the order of their hashes, as stores are. So many
  /// stores do not fit into the caches of the processor, which cannot prefetch them in that order.
  private static func writes(to size: Int) -> Work {
    let values = Dictionary(uniqueKeysWithValues: (0..<size).map { ($0, LargeLockedValue()) })
    return Work(count: size) { _ in timed { for value in values.values { value.write(1) } } }
  }

  private static func filled(_ size: Int) -> (items: [Item], client: OperationClient) {
    let items = Fixtures.items(size)
    return (items, Fixtures.client(items))
  }

  /// Invalidates all stores of a client. An operation is one of them.
  private static func invalidation(of client: OperationClient, _ size: Int) -> Pair {
    Pair(
      subject: Work(count: size) { _ in timed { client.invalidate(matching: []) } },
      floor: writes(to: size))
  }

  private static func dictionary(of items: [Item], keys: [OperationPath]) -> Work {
    let values = Dictionary(uniqueKeysWithValues: items.map { ($0.path, LockedValue()) })
    return .loop { blackHole(values[keys[$0 % keys.count]]) }
  }
}
