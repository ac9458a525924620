import FoundationEssentials
import Operation
import Synchronization

extension Catalogue {
  static let runs: [Benchmark] = [
    Benchmark(name: "fetch, no modifiers", floor: "await Task { 1 }.value", limit: 3) { _ in
      let store = OperationStore.detached(query: Item(path: ["item"]))
      return Pair(subject: .loop { _ in blackHole(try await store.fetch()) }, floor: bareTask)
    },
    Benchmark(
      name: "fetch, standard defaults", floor: "await Task { 1 }.value", limit: 3.5
    ) { _ in
      Pair(subject: Fixtures.fetch(), floor: bareTask)
    },
    Benchmark(
      name: "awaiters of a shared run", floor: "list of continuations behind a task",
      sizes: [1_000, 10_000, 50_000], unit: "awaiters", limit: 1.5, growth: .linear
    ) { size in
      Pair(
        subject: .each { try await awaitRun(size) }, floor: .each { await awaitList(size) })
    },
    Benchmark(
      name: "parallel runs", floor: "as many tasks", sizes: [100, 1_000, 10_000], unit: "runs",
      growth: .flat
    ) { size in
      let gate = Gate()
      let store = OperationStore.detached(
        query: Query(path: ["gate"]) { _ in
          await gate.wait()
          return 1
        })
      return Pair(
        subject: parallel(size, gate) { blackHole(try await store.fetch()) },
        floor: parallel(size, gate) { await gate.wait() })
    },
    Benchmark(
      name: "parallel calls", floor: "as many tasks", sizes: [100, 1_000, 10_000],
      unit: "calls", growth: .flat
    ) { size in
      let gate = Gate()
      let store = OperationStore.detached(
        mutation: Mutation<Int, Int>(path: ["gate"]) { arguments, _ in
          await gate.wait()
          return arguments
        })
      return Pair(
        subject: parallel(size, gate) { blackHole(try await store.mutate(with: 1)) },
        floor: parallel(size, gate) { await gate.wait() })
    },
    Benchmark(
      name: "mutate", floor: "the fetch case", sizes: [10, 1_000, 10_000], unit: "calls",
      limit: 2.5, growth: .flat
    ) { size in
      let call = Mutation<Int, Int>(path: ["mutation"]) { arguments, _ in arguments }
      return Pair(subject: mutate(after: size, call), floor: Fixtures.fetch())
    },
    Benchmark(
      name: "mutate, serialized", floor: "the fetch case", sizes: [10, 1_000], unit: "calls",
      growth: .flat
    ) { size in
      let call = Mutation<Int, Int>(path: ["mutation"]) { arguments, _ in arguments }
      return Pair(
        subject: mutate(after: size, call.serialized(in: "scope")), floor: Fixtures.fetch())
    },
    Benchmark(
      name: "mutate, long history", floor: "the fetch case", sizes: [10, 1_000, 10_000],
      unit: "calls", limit: 2.5, growth: .flat
    ) { size in
      let call = Mutation<Int, Int>(path: ["mutation"]) { arguments, _ in arguments }
      return Pair(
        subject: mutate(after: size, call.maxHistory(length: 100_000)), floor: Fixtures.fetch())
    },
  ]

  private static var bareTask: Work {
    .loop { _ in blackHole(await Task { 1 }.value) }
  }

  /// Returns calls of a mutation after `size` others.
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

  /// Starts `size` tasks at a time, which wait at a gate. An operation is one of the tasks.
  private static func parallel(
    _ size: Int, _ gate: Gate, _ body: @escaping @Sendable () async throws -> Void
  ) -> Work {
    Work { count in
      let rounds = max(1, count / size)
      let cost = try await timed {
        for _ in 0..<rounds {
          let tasks = (0..<size).map { _ in Task { try await body() } }
          await gate.waiters(atLeast: size)
          gate.open()
          for task in tasks { try await task.value }
        }
      }
      return cost * Double(count) / Double(rounds * size)
    }
  }

  /// Awaits one run in many tasks. The run ends when all of them have arrived.
  private static func awaitRun(_ count: Int) async throws -> Double {
    let arrivals = Countdown(count)
    let runCount = Atomic(0)
    let client = OperationClient()
    let query = Query(path: ["shared"]) { _ in
      await arrivals.wait()
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
            arrivals.countDown()
            return try await store.fetch()
          }
        }
        for try await value in group { blackHole(value) }
      }
    }
    // The last task on each core may fetch after the run has ended.
    let cores = ProcessInfo.processInfo.activeProcessorCount
    precondition(
      runCount.load(ordering: .relaxed) <= 1 + cores, "The awaiters did not share a run.")
    withExtendedLifetime(client) {}
    return cost
  }

  /// Awaits one task in many tasks, by a list of continuations. The task ends when all of the others
  /// have arrived.
  private static func awaitList(_ count: Int) async -> Double {
    let arrivals = Countdown(count)
    let list = ContinuationList()
    let task = Task {
      await arrivals.wait()
      list.resumeAll(returning: 1)
    }
    return await timed {
      await withTaskGroup(of: Int.self) { group in
        for _ in 0..<count {
          group.addTask {
            arrivals.countDown()
            return await list.value()
          }
        }
        for await value in group { blackHole(value) }
      }
      await task.value
    }
  }
}

/// Continuations that are resumed together.
private final class ContinuationList: Sendable {
  private let state = Mutex<(value: Int?, waiters: [UnsafeContinuation<Int, Never>])>((nil, []))

  /// Waits for the value.
  func value() async -> Int {
    await withUnsafeContinuation { waiter in
      let value = state.withLock { state in
        if state.value == nil { state.waiters.append(waiter) }
        return state.value
      }
      if let value { waiter.resume(returning: value) }
    }
  }

  func resumeAll(returning value: Int) {
    let waiters = state.withLock { state in
      state.value = value
      return state.waiters
    }
    for waiter in waiters { waiter.resume(returning: value) }
  }
}

/// Lets tasks wait, and resumes them in an order that is mixed and always the same.
private final class Gate: Sendable {
  private let waiters = Mutex<[UnsafeContinuation<Void, Never>]>([])

  func wait() async {
    await withUnsafeContinuation { waiter in waiters.withLock { $0.append(waiter) } }
  }

  func waiters(atLeast count: Int) async {
    while waiters.withLock({ $0.count < count }) { await Task.yield() }
  }

  func open() {
    let waiters = waiters.withLock { waiters in
      defer { waiters = [] }
      return waiters
    }
    // A prime that divides no size, so that each index occurs once.
    for index in waiters.indices { waiters[index * 7_919 % waiters.count].resume() }
  }
}
