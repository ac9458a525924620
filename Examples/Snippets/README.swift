// The code of the README: the build compiles it, and a test compares it with the file.

import Fetching

// snippet: a first query
import Foundation
import FoundationNetworking
import SharingOperation

struct Post: Codable, Sendable, Equatable {
  let id: Int
  let title: String
}

struct PostQuery: SimpleQueryRequest, Hashable {
  let id: Int

  func fetch(in context: OperationContext) async throws -> Post {
    let url = URL(string: "https://example.com/posts/\(id)")!
    let (data, _) = try await URLSession.shared.answer(to: URLRequest(url: url))
    return try JSONDecoder().decode(Post.self, from: data)
  }
}

func printTitle(in client: OperationClient) async throws {
  let post = try await client.ensure(PostQuery(id: 1).stale(after: .seconds(60)))
  print(post.title)
}
// end

// snippet: in a model class
import Observation

@MainActor
@Observable
final class PostModel {
  @ObservationIgnored @SharedQuery(PostQuery(id: 1)) var post

  var headline: String {
    post?.title ?? ($post.isLoading ? "loading" : "no post")
  }

  func refresh() async throws {
    try await $post.fetch()
  }
}

func follow(_ client: OperationClient) async {
  for await post in client.store(for: PostQuery(id: 1)).values {
    print(post?.title ?? "nothing yet")
  }
}
// end
