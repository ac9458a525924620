import Synchronization
import Testing

@testable import Operation

/// Waits of runs for other runs that end early, or never begin.
@Suite(.timeLimit(.minutes(5))) struct EndedWaitTests {
  private typealias Store = OperationStore<QueryState<Int, any Error>>
  private typealias Shared = ModifiedOperation<
    Query<Int, any Error>, DeduplicationModifier<Query<Int, any Error>>
  >

  private let client = OperationClient(defaults: .testing, clock: ManualClock())

  @Test("A run that no longer awaits a shared one may be awaited by it")
  func endedWaitForShared() async throws {
    let (stores, last, gate) = (Monitor<[Store]>([]), AsyncGate(), AsyncGate())
    let (begun, joined, ended) = (EventLog<Int>(), EventLog<Int>(), EventLog<Int>())
    let shared = Query<Int, any Error>(path: ["shared"]) { _, continuation in
      begun.append(1)
      while joined.count == 0 {
        continuation.yield(0)
        await Task.yield()
      }
      await gate.wait()
      return try await stores.value[0].run()
    }.deduplicated()
    let first = client.store(
      for: Query<Int, any Error>(path: ["first"]) { _ in
        let wait = Task {
          // It has joined the run when it receives a yield.
          try await shared.run(with: OperationContinuation { _ in joined.append(1) })
        }
        await joined.wait(for: 1)
        wait.cancel()
        _ = await wait.result
        gate.open()
        await last.wait()
        return 1
      })
    stores.update { $0 = [first] }
    let call = Task {
      defer { ended.append(1) }
      return try await shared.run()
    }
    await begun.wait(for: 1)
    let other = Task { try await first.run() }
    while first.leaseCount < 2, ended.count == 0 { await Task.yield() }
    last.open()
    #expect(try await (call.value, other.value) == (1, 1))
    stores.update { $0 = [] }
  }

  @Test("A run that was refused a wait may be awaited again by the other one")
  func refusedWait() async throws {
    let (stores, last) = (Monitor<[Store]>([]), AsyncGate())
    let (refused, left, ended) = (EventLog<Int>(), EventLog<Int>(), EventLog<Int>())
    let secondRun = Monitor<TaskNode?>(nil)
    stores.update {
      $0 = [
        client.store(
          for: Query<Int, any Error>(path: ["first"]) { _ in
            // A lease is taken before the wait begins, and then the other wait would be refused.
            while secondRun.value?.awaitsNothing != false { await Task.yield() }
            _ = try? await stores.value[1].run()
            refused.append(1)
            await last.wait()
            return 1
          }),
        client.store(
          for: Query<Int, any Error>(path: ["second"]) { _ in
            secondRun.update { $0 = TaskNode.current }
            let wait = Task { try await stores.value[0].run() }
            await refused.wait(for: 1)
            wait.cancel()
            _ = await wait.result
            left.append(1)
            defer { ended.append(1) }
            return try await stores.value[0].run() + 1
          }),
      ]
    }
    let (first, second) = (stores.value[0], stores.value[1])
    let calls = [first, second].map { store in Task { try await store.run() } }
    // Before that, the first wait may still have its lease.
    await left.wait(for: 1)
    while first.leaseCount < 2 || !second.isLoading, ended.count == 0 { await Task.yield() }
    last.open()
    #expect(try await (calls[0].value, calls[1].value) == (1, 2))
    stores.update { $0 = [] }
  }

  @Test("A wait that would close a cycle holds no lease") func refusedLease() async throws {
    let stores = Monitor<[Store]>([])
    stores.update {
      $0 = [
        client.store(
          for: Query<Int, any Error>(path: ["own"]) { _ in
            _ = try? await stores.value[0].run()
            return stores.value[0].leaseCount
          })
      ]
    }
    #expect(try await stores.value[0].run() == 1)
    stores.update { $0 = [] }
  }

  @Test("A shared run that would await itself is cancelled with its only caller")
  func refusedSharedLease() async {
    let (request, refused, cancelled) = (Monitor<Shared?>(nil), EventLog<Int>(), EventLog<Int>())
    let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
    request.update {
      $0 = Query<Int, any Error>(path: ["shared"]) { _ in
        _ = try? await request.value?.run()
        refused.append(1)
        // Until it is cancelled.
        for await _ in stream {}
        cancelled.append(1)
        return 1
      }.deduplicated()
    }
    let call = Task { try await request.value?.run() }
    await refused.wait(for: 1)
    call.cancel()
    await cancelled.wait(for: 1)
    _ = await call.result
    withExtendedLifetime(continuation) {}
    request.update { $0 = nil }
  }
}

extension TaskNode {
  fileprivate var awaitsNothing: Bool { guarded.withLock { $0.awaited.elements.isEmpty } }
}
