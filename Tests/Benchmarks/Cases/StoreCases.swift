import Operation
import Synchronization

extension Catalogue {
  static let stores: [Benchmark] = [
    Benchmark(
      name: "lookup by path", floor: "Dictionary, same paths", sizes: [1_000, 10_000, 100_000],
      unit: "stores", limit: 3, growth: .flat
    ) { size in
      let (items, client) = filled(size)
      let asked = Fixtures.paths(size).shuffled()
      return Pair(
        subject: .loop { Sink.take(client.store(with: asked[$0 % size])?.base) },
        floor: dictionary(of: items, asked: asked))
    },
    Benchmark(
      name: "lookup by request", floor: "Dictionary, same paths", sizes: [1_000, 10_000, 100_000],
      unit: "stores", limit: 3, growth: .flat
    ) { size in
      let (items, client) = filled(size)
      let asked = Fixtures.items(size).shuffled()
      return Pair(
        subject: .loop { Sink.take(client.store(for: asked[$0 % size])) },
        floor: dictionary(of: items, asked: asked.map(\.path)))
    },
    Benchmark(
      name: "creation", floor: "Mutex in a class, Dictionary", sizes: [1_000, 10_000, 100_000],
      unit: "stores", limit: 8, growth: .flat
    ) { size in
      let items = Fixtures.items(size)
      return Pair(
        subject: Work(count: size) { _ in
          let client = OperationClient()
          let cost = timed { for item in items { Sink.take(client.store(for: item)) } }
          withExtendedLifetime(client) {}
          return cost
        },
        floor: Work(count: size) { _ in
          var boxes: [OperationPath: Box] = [:]
          let cost = timed { for item in items { boxes[item.path] = Box() } }
          Sink.take(boxes.count)
          return cost
        })
    },
    Benchmark(
      name: "stores(matching:), 100 members", floor: "array of 100, copied and walked",
      sizes: [1_000, 10_000, 100_000], unit: "stores", limit: 6, growth: .flat
    ) { size in
      let client = Fixtures.client(Fixtures.items(size, group: 100))
      let prefixes = (0..<size / 100).map { ["items", $0] as OperationPath }
      // Of each prefix, so that both look at stores that have not been looked at for as long.
      let groups = prefixes.map { client.stores(matching: $0).map(\.base) }
      return Pair(
        subject: .loop { index in
          for store in client.stores(matching: prefixes[index % prefixes.count]) {
            Sink.take(store.base)
          }
        },
        floor: .loop { index in
          var copy: [any Sendable & AnyObject] = []
          copy.append(contentsOf: groups[index % groups.count])
          for member in copy { Sink.take(member) }
        })
    },
  ]

  private static func filled(_ size: Int) -> ([Item], OperationClient) {
    let items = Fixtures.items(size)
    return (items, Fixtures.client(items))
  }

  private static func dictionary(of items: [Item], asked: [OperationPath]) -> Work {
    let boxes = Dictionary(uniqueKeysWithValues: items.map { ($0.path, Box()) })
    return .loop { Sink.take(boxes[asked[$0 % asked.count]]) }
  }
}
