// The code of README.md: the build compiles it, and a test compares it with the file.

// snippet: queries
import Foundation
import FoundationNetworking
import SharingOperation

struct Post: Codable, Sendable, Equatable {
  let id: Int
  let title: String
  let authorId: Int
}

struct Author: Codable, Sendable, Equatable {
  let id: Int
  let name: String
}

struct PostQuery: SimpleQueryRequest, Hashable {
  let id: Int

  func fetch(in context: OperationContext) async throws -> Post { try await get("posts/\(id)") }
}

struct AuthorQuery: SimpleQueryRequest, Hashable {
  let id: Int

  func fetch(in context: OperationContext) async throws -> Author { try await get("authors/\(id)") }
}

func get<Value: Decodable>(_ path: String) async throws -> Value {
  let url = URL(string: "http://localhost:8080/\(path)")!
  let exchange = Task { try await URLSession.shared.data(from: url) }
  let (data, _) = try await exchange.value
  return try JSONDecoder().decode(Value.self, from: data)
}
// end

// snippet: client
func printTitle(in client: OperationClient) async throws {
  let store = client.store(for: PostQuery(id: 1).retry(limit: 2).stale(after: .seconds(60)))
  async let first = store.fetch()
  async let second = store.fetch()
  print(try await first.title, try await second == first)
}
// end

// snippet: model
import Observation

@Observable
final class PostModel {
  @ObservationIgnored @SharedQuery(PostQuery(id: 1)) var post
  @ObservationIgnored @SharedQuery<AuthorQuery.State> var author

  init() {
    _author = SharedQuery(dependingOn: $post) { post in AuthorQuery(id: post.authorId) }
  }

  func refresh() async throws {
    try await $post.fetch()
  }
}
// end

// snippet: loop
func follow(_ model: PostModel) async {
  for await (post, author) in model.$post.values.combineLatest(model.$author.values) {
    print(post?.title ?? "…", "by", author?.name ?? "…")
  }
}
// end

// snippet: clock
func retriesAfterOneSecond() async throws {
  struct Offline: Error {}
  let clock = ManualClock()
  let client = OperationClient(clock: clock)
  let query = Query(path: ["answer"]) { context in
    if context.operationRetryIndex == 0 { throw Offline() }
    return 42
  }
  let store = client.store(for: query.backoff(.constant(.seconds(1))))
  async let answer = store.run()
  await clock.sleepers(atLeast: 1)
  await clock.advance(by: .seconds(1))
  let value = try await answer
  assert(value == 42)
}
// end
