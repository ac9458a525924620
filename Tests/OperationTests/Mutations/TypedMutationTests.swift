import Operation
import Testing

private enum Declined: Error { case always }

private struct TypedMutation: MutationRequest, Hashable {
  func mutate(
    with arguments: Int, in context: OperationContext,
    with continuation: OperationContinuation<Int, Declined>
  ) async throws(Declined) -> Int {
    guard arguments > 0 else { throw .always }
    return arguments
  }
}

/// A mutation with a failure of its own type.
@Suite struct TypedMutationTests {
  @Test("A failure keeps its type from the mutation to the caller and the history")
  func typed() async {
    let store = OperationStore.detached(mutation: TypedMutation())
    do throws(Declined) {
      try await store.mutate(with: 0)
      Issue.record("nothing was thrown")
    } catch {
      #expect(error == .always)
    }
    #expect(store.error == .always)
    #expect(store.history.first?.currentResult == .failure(.always))
  }

  @Test("retryLatest says that there are no arguments, whatever the failure of the mutation")
  func retry() async throws {
    let store = OperationStore.detached(mutation: TypedMutation())
    await #expect(throws: MutationError.noArguments) { try await store.retryLatest() }
    try await store.mutate(with: 3)
    #expect(try await store.retryLatest() == 3)
  }

  @Test("A run that was never given arguments, and has no failure to say so, ends the program")
  func trap() async {
    await #expect(processExitsWith: .failure) {
      _ = try await OperationStore.detached(mutation: TypedMutation()).fetch()
    }
  }
}
