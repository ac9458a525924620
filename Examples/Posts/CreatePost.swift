import SharingOperation

/// Adds a post to the blog.
struct CreatePost: MutationRequest, Hashable {
  func mutate(
    with draft: Draft, in context: OperationContext,
    with continuation: OperationContinuation<Post, BlogError>
  ) async throws(BlogError) -> Post {
    try await context.blog.post(draft, to: "posts", key: context.operationCallID)
  }
}

extension CreatePost {
  /// The mutation, for an unreliable connection: a call waits for the connection, and so do the
  /// calls after it. A client with a storage keeps the calls until they have ended.
  var patient: some MutationRequest<Draft, Post> & StatefulOperationRequest<Post, State> {
    serialized(in: "posts").networkMode(.online).persisted()
  }
}
