import Observation
import SharingOperation

/// The displayed values of the blog.
///
/// The wrappers notify observers themselves, so the macro has to ignore them.
@MainActor
@Observable
final class BlogModel {
  @ObservationIgnored
  @SharedQuery(PostsQuery().resilient, default: []) var posts

  /// The open post; `nil` until ``open(_:)`` is called.
  @ObservationIgnored
  @SharedQuery<PostQuery.State> var post

  /// The author of the open post. It follows the post, without a call.
  @ObservationIgnored
  @SharedQuery<AuthorQuery.State> var author

  /// The comments on the open post; `nil` until ``showComments()`` is called.
  @ObservationIgnored
  @SharedQuery<CommentsQuery.State> var comments

  init() {
    _author = SharedQuery(dependingOn: $post) { AuthorQuery(id: $0.authorId).resilient }
  }

  /// A reader in `withObservationTracking` is notified when the post or the author changes.
  var byline: String? {
    guard let post, let author else { return nil }
    return "\"\(post.title)\" by \(author.name)"
  }

  func open(_ id: Post.ID) {
    $post.bind(to: PostQuery(id: id).resilient)
  }

  func showComments() {
    guard let post else { return }
    $comments.bind(to: CommentsQuery(postID: post.id).resilient)
  }
}
