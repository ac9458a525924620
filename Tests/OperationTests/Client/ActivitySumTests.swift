@testable import Operation
import Testing

/// The stores that count in the activity of a client.
@Suite(.timeLimit(.minutes(5))) struct ActivitySumTests {
  private let client = OperationClient(defaults: .testing, clock: ManualClock())

  @Test("A store without a client is not counted, also with the context of one")
  func detached() async throws {
    let query = Query<Int, any Error>(path: ["detached"]) { _ in throw Failed() }
    let context = client.store(for: query).context
    let store = OperationStore.detached(query: query, initialContext: context)
    _ = try? await store.run()
    #expect(client.activity == OperationActivity())
  }

  @Test("A store counts while it is in the client, and not after it is removed during a run")
  func removed() async throws {
    let remote = Remote<Int>()
    let store = client.store(for: remote.query())
    let run = Task { try await store.run() }
    await remote.wait(forCalls: 1)
    #expect(client.activity.queries == .init(running: 1))
    client.clearStores()
    #expect(client.activity == OperationActivity())
    remote.fail(Failed())
    _ = try? await run.value
    #expect(client.activity == OperationActivity())
  }

  @Test("Requests that clash on a path count each")
  func clash() async throws {
    let failing = Query<Int, any Error>(path: ["path"]) { _ in throw Failed() }
    let mutation = Mutation<Int, Int>(path: ["path"]) { _, _ in throw Failed() }
    _ = await issues {
      _ = try? await client.store(for: failing).run()
      _ = try? await client.store(for: mutation).mutate(with: 1)
    }
    #expect(client.activity.queries == .init(failed: 1))
    #expect(client.activity.mutations == .init(failed: 1))
    client.reset(failing)
    #expect(client.activity.queries == .init())
    client.clearStores()
    #expect(client.activity == OperationActivity())
  }
}
