import SharingOperation

/// Signs somebody in, in the place of whoever is, or signs out.
struct ChangeUser: MutationRequest, Hashable {
  func mutate(
    with userID: User.ID?, in context: OperationContext,
    with continuation: OperationContinuation<User?, any Error>
  ) async throws -> User? {
    let user = try await context.api.changeUser(to: userID)
    await show(user, in: context)
    return user
  }

  /// Puts the user at the head of the chain, which turns before this returns. On the main actor, so
  /// that nobody there reads one link when it has turned and the next when it has not.
  @MainActor
  private func show(_ user: User?, in context: OperationContext) {
    guard let store = context.operationClient?.store(for: User.currentQuery) else { return }
    // Who is being asked for is the user from before.
    store.cancel()
    store.currentValue = user
  }
}
