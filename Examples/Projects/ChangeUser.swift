import SharingOperation

/// Signs a user in, in place of the present one, or signs out.
struct ChangeUser: MutationRequest, Hashable {
  func mutate(
    with userID: User.ID?, in context: OperationContext,
    with continuation: OperationContinuation<User?, any Error>
  ) async throws -> User? {
    let user = try await context.api.changeUser(to: userID)
    await show(user, in: context)
    return user
  }

  /// Sets the user at the head of the chain, whose links change before this returns. On the main
  /// actor, so that no reader there gets one link of the new user and the next of the old one.
  @MainActor
  private func show(_ user: User?, in context: OperationContext) {
    guard let store = context.operationClient?.store(for: User.currentQuery) else { return }
    // A run in flight may return the earlier user.
    store.cancel()
    store.currentValue = user
  }
}
