import Foundation
import Glibc
import Operation

extension Catalogue {
  static let memory: [Benchmark] = [
    Benchmark(
      name: "resident bytes per store", floor: "Mutex in a class, Dictionary", sizes: [100_000],
      unit: "stores", byteLimit: 1_200
    ) { size in
      Pair(
        subject: Work(count: size) { count in
          try Memory.growth {
            let client = OperationClient()
            for index in 0..<count { _ = client.store(for: item(index)) }
            return client
          }
        },
        floor: Work(count: size) { count in
          try Memory.growth {
            var values: [OperationPath: LockedValue] = [:]
            for index in 0..<count { values[item(index).path] = LockedValue() }
            return values
          }
        })
    },
    Benchmark(
      name: "bytes left by a cancelled subscription", floor: "", sizes: [100_000],
      unit: "subscriptions", byteLimit: 0.5
    ) { size in
      let (client, store) = Fixtures.store()
      let other = store.subscribe { _ in }
      return Pair(
        subject: Work(count: size) { count in
          try Memory.growth {
            for index in 0..<count { store.subscribe { _ in blackHole(index) }.cancel() }
            return (client, other)
          }
        })
    },
    Benchmark(
      name: "bytes left by a cancelled stream", floor: "", sizes: [100_000],
      unit: "streams", byteLimit: 0.5
    ) { size in
      let (client, store) = Fixtures.store()
      let other = store.subscribe { _ in }
      return Pair(
        subject: Work(count: size) { count in
          try Memory.growth {
            for _ in 0..<count { _ = store.states.makeAsyncIterator() }
            return (client, other)
          }
        })
    },
    Benchmark(
      // A few pages that the process gets for other reasons must stay below the limit for each write.
      name: "bytes per write to an idle stream", floor: "", sizes: [100_000, 1_000_000],
      unit: "writes",
      byteLimit: 0.5
    ) { size in
      Pair(
        subject: Work(count: size) { count in
          let (client, store) = Fixtures.store()
          let idle = store.states.makeAsyncIterator()
          return try Memory.growth {
            for index in 0..<count { store.currentValue = index }
            return (client, store, idle)
          }
        })
    },
  ]

  private static func item(_ index: Int) -> Item { Item(path: ["items", index / 10, index]) }
}

/// The memory of this process.
enum Memory {
  /// Returns how many bytes the output of a call occupies.
  static func growth<Output>(_ body: () throws -> Output) throws -> Double {
    let before = try residentBytes()
    let output = try body()
    let after = try residentBytes()
    withExtendedLifetime(output) {}
    return Double(after - before)
  }

  /// Returns the resident bytes, after the allocator has returned free memory to the system.
  private static func residentBytes() throws -> Int {
    trim()
    let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    let fields = text.split(separator: " ")
    guard fields.count > 1, let pages = Int(fields[1]) else {
      throw CocoaError(.fileReadCorruptFile)
    }
    return pages * sysconf(Int32(_SC_PAGESIZE))
  }

  /// Calls `malloc_trim` of the C library, which the module `Glibc` does not export.
  private static func trim() {
    guard let symbol = dlsym(nil, "malloc_trim") else { return }
    _ = unsafeBitCast(symbol, to: (@convention(c) (Int) -> Int32).self)(0)
  }
}
