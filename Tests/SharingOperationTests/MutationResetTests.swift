import SharingOperation
import Testing

@Suite struct MutationResetTests {
  private struct Refused: Error {}

  private struct Doubling: MutationRequest, Hashable {
    func mutate(
      with number: Int, in context: OperationContext,
      with continuation: OperationContinuation<Int, Refused>
    ) async throws(Refused) -> Int { number * 2 }
  }

  /// A value whose hash resets a store.
  private struct Resetting: Hashable, Sendable {
    let reset: @Sendable () -> Void

    static func == (lhs: Resetting, rhs: Resetting) -> Bool { true }

    func hash(into hasher: inout Hasher) { reset() }
  }

  private enum ResettingKey: OperationContext.Key {
    static var defaultValue: Resetting? { nil }
  }

  @Test("A reset before the run does not remove the checked arguments of the run")
  func reset() async throws {
    let client = OperationClient(defaults: .testing)
    let wrapper = SharedQuery(Doubling(), client: client)
    let store = try #require(wrapper.store)
    let opaque = try #require(client.store(with: store.path))
    var context = OperationContext()
    // The context is hashed after the check, and before the run is in the store.
    context[ResettingKey.self] = Resetting { [weak store] in store?.resetState() }
    for run in [
      { try await wrapper.run(using: context) }, { try await wrapper.fetch(using: context) },
      { try await wrapper.fetch(restarting: true, using: context) },
      { try await wrapper.runTask(using: context).runIfNeeded() },
      { try await opaque.run(using: context) as? Int ?? 0 },
    ] as [() async throws -> Int] {
      try await wrapper.mutate(with: 2)
      #expect(try await run() == 4)
    }
  }
}
