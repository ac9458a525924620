import FoundationEssentials
import Operation
import Synchronization

extension Catalogue {
  static let runs: [Benchmark] = [
    Benchmark(name: "fetch, no modifiers", floor: "await Task { 1 }.value", limit: 2.5) { _ in
      let store = OperationStore.detached(query: Item(path: ["item"]))
      return Pair(subject: .loop { _ in Sink.take(try await store.fetch()) }, floor: bareTask)
    },
    Benchmark(
      name: "fetch, standard defaults", floor: "await Task { 1 }.value", limit: 3.5
    ) { _ in
      Pair(subject: Fixtures.fetch(), floor: bareTask)
    },
    Benchmark(
      name: "awaiters of one run", floor: "tasks that await one Task",
      sizes: [1_000, 10_000, 50_000], unit: "awaiters", limit: 0.5, growth: .linear
    ) { size in
      Pair(
        subject: .each { try await awaitRun(size) }, floor: .each { try await awaitTask(size) })
    },
    Benchmark(
      name: "runs side by side", floor: "as many tasks", sizes: [100, 1_000, 10_000], unit: "runs",
      growth: .flat
    ) { size in
      let doors = Doors()
      let store = OperationStore.detached(
        query: Query(path: ["doors"]) { _ in
          await doors.wait()
          return 1
        })
      return Pair(
        subject: sideBySide(size, doors) { Sink.take(try await store.fetch()) },
        floor: sideBySide(size, doors) { await doors.wait() })
    },
    Benchmark(
      name: "calls side by side", floor: "as many tasks", sizes: [100, 1_000, 10_000],
      unit: "calls", growth: .flat
    ) { size in
      let doors = Doors()
      let store = OperationStore.detached(
        mutation: Mutation<Int, Int>(path: ["doors"]) { arguments, _ in
          await doors.wait()
          return arguments
        })
      return Pair(
        subject: sideBySide(size, doors) { Sink.take(try await store.mutate(with: 1)) },
        floor: sideBySide(size, doors) { await doors.wait() })
    },
    Benchmark(
      name: "mutate", floor: "the fetch case", sizes: [10, 1_000, 10_000], unit: "calls",
      limit: 2, growth: .flat
    ) { size in
      let call = Mutation<Int, Int>(path: ["mutation"]) { arguments, _ in arguments }
      return Pair(subject: mutate(after: size, call), floor: Fixtures.fetch())
    },
    Benchmark(
      name: "mutate, remembering all", floor: "the fetch case", sizes: [10, 1_000, 10_000],
      unit: "calls", limit: 2, growth: .flat
    ) { size in
      let call = Mutation<Int, Int>(path: ["mutation"]) { arguments, _ in arguments }
      return Pair(
        subject: mutate(after: size, call.maxHistory(length: 100_000)), floor: Fixtures.fetch())
    },
  ]

  private static var bareTask: Work {
    .loop { _ in Sink.take(await Task { 1 }.value) }
  }

  /// Calls of a mutation after so many others.
  private static func mutate<Request: MutationRequest<Int, Int>>(
    after size: Int, _ request: Request
  ) -> Work where Request.MutateFailure == any Error {
    Work { count in
      var rest = count
      var cost = 0.0
      while rest > 0 {
        let client = OperationClient()
        let store = client.store(for: request)
        for index in 0..<size { try await store.mutate(with: index) }
        let calls = min(rest, max(20, size / 10))
        cost += try await timed {
          for index in 0..<calls { try await store.mutate(with: index) }
        }
        rest -= calls
        withExtendedLifetime(client) {}
      }
      return cost
    }
  }

  /// So many tasks at a time, which wait at doors that open in no order; one operation is one of them.
  private static func sideBySide(
    _ size: Int, _ doors: Doors, _ body: @escaping @Sendable () async throws -> Void
  ) -> Work {
    Work { count in
      let rounds = max(1, count / size)
      let cost = try await timed {
        for _ in 0..<rounds {
          let tasks = (0..<size).map { _ in Task { try await body() } }
          await doors.wait(for: size)
          doors.open()
          for task in tasks { try await task.value }
        }
      }
      return cost * Double(count) / Double(rounds * size)
    }
  }

  /// Many who await one run, which ends when all of them are there.
  private static func awaitRun(_ count: Int) async throws -> Double {
    let arrivals = Arrivals(count)
    let runCount = Atomic(0)
    let client = OperationClient()
    let query = Query(path: ["shared"]) { _ in
      await arrivals.all()
      return 1
    }
    let store = client.store(
      for: query.handleEvents { event in
        if case .runStarted = event { runCount.add(1, ordering: .relaxed) }
      })
    let cost = try await timed {
      try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<count {
          group.addTask {
            arrivals.note()
            return try await store.fetch()
          }
        }
        for try await value in group { Sink.take(value) }
      }
    }
    // Of the last ones, each on a core of its own, some may come when the others have gone.
    let cores = ProcessInfo.processInfo.activeProcessorCount
    precondition(
      runCount.load(ordering: .relaxed) <= 1 + cores, "The awaiters did not share a run.")
    withExtendedLifetime(client) {}
    return cost
  }

  /// Many who await one task, which ends when all of them are there.
  private static func awaitTask(_ count: Int) async throws -> Double {
    let arrivals = Arrivals(count)
    let task = Task {
      await arrivals.all()
      return 1
    }
    return await timed {
      await withTaskGroup(of: Int.self) { group in
        for _ in 0..<count {
          group.addTask {
            arrivals.note()
            return await task.value
          }
        }
        for await value in group { Sink.take(value) }
      }
    }
  }
}

/// Lets many wait, and then go in no order, but always the same one.
private final class Doors: Sendable {
  private let waiters = Mutex<[UnsafeContinuation<Void, Never>]>([])

  func wait() async {
    await withUnsafeContinuation { waiter in waiters.withLock { $0.append(waiter) } }
  }

  func wait(for count: Int) async {
    while waiters.withLock({ $0.count < count }) { await Task.yield() }
  }

  func open() {
    let waiters = waiters.withLock { waiters in
      defer { waiters = [] }
      return waiters
    }
    // A prime that divides no size, so that each comes once.
    for index in waiters.indices { waiters[index * 7_919 % waiters.count].resume() }
  }
}

/// Lets one wait until so many others have come.
private final class Arrivals: Sendable {
  private let countdown = Countdown()

  init(_ count: Int) {
    countdown.set(count)
  }

  func note() { countdown.hit() }
  func all() async { await countdown.wait() }
}
