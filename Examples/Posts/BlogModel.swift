import Observation
import SharingOperation

/// What a reader of the blog looks at.
///
/// The wrappers do their own tracking, property by property, so the macro is to leave them alone.
@MainActor
@Observable
final class BlogModel {
  @ObservationIgnored
  @SharedQuery(PostsQuery().resilient, default: []) var posts

  /// The post that is open; nothing until ``open(_:)``.
  @ObservationIgnored
  @SharedQuery<PostQuery.State> var post

  /// Who wrote the open post. It follows the post, and nobody has to fetch it.
  @ObservationIgnored
  @SharedQuery<AuthorQuery.State> var author

  /// The comments on the open post; nothing until ``showComments()``.
  @ObservationIgnored
  @SharedQuery<CommentsQuery.State> var comments

  init() {
    _author = SharedQuery(dependingOn: $post) { AuthorQuery(id: $0.authorId).resilient }
  }

  /// Who reads this in `withObservationTracking` is told when the post or the author changes.
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
