import Foundation
import LoopbackServer
import SharingOperation
import Testing

@testable import posts

@Suite(.timeLimit(.minutes(5))) struct QueriesTests {
  @Test("Every query reads its route")
  func routes() async throws {
    let blog = try Blog()
    defer { blog.server.stop() }
    let data = BlogData(seed: 5)
    #expect(try await blog.client.store(for: PostsQuery()).fetch().count == 20)
    let post = try await blog.client.store(for: PostQuery(id: 3)).fetch()
    #expect(post.title == data.posts[2].title)
    let author = try await blog.client.store(for: AuthorQuery(id: post.authorId)).fetch()
    #expect(author.name == "Caleb Whitford")
    let comments = try await blog.client.store(for: CommentsQuery(postID: 3)).fetch()
    #expect(comments.map(\.text) == data.comments.filter { $0.postId == 3 }.map(\.text))
  }

  @Test("A failed response is reported and retried")
  func retry() async throws {
    let blog = try Blog(ServerBehaviour(latency: .zero, faults: [.init("/posts", .first(2))]))
    defer { blog.server.stop() }
    let store = blog.client.store(for: PostsQuery().resilient)
    async let posts = store.fetch()
    await blog.letRetry()
    await blog.letRetry()
    #expect(try await posts.count == 20)
    #expect(blog.server.requestCount(for: "/posts") == 3)
    #expect(
      blog.reports == [
        "attempt 1 of 3: the server answered with status 503; trying again",
        "attempt 2 of 3: the server answered with status 503; trying again",
      ])
  }

  @Test("The last failure is thrown, with its type, and stored")
  func lastFailure() async throws {
    let blog = try Blog(ServerBehaviour(latency: .zero, faults: [.init("/posts", .always)]))
    defer { blog.server.stop() }
    let store = blog.client.store(for: PostsQuery().resilient)
    let fetch = Task { try await store.fetch() }
    await blog.letRetry()
    await blog.letRetry()
    let url = blog.server.baseURL.appending(path: "posts")
    let error = BlogError(url: url, reason: .status(503))
    await #expect(throws: error) { try await fetch.value }
    #expect(store.error == error)
    #expect(blog.reports.count == 2)
  }

  @Test("A permanent failure is not retried")
  func permanent() async throws {
    let blog = try Blog()
    defer { blog.server.stop() }
    let url = blog.server.baseURL.appending(path: "posts/999")
    await #expect(throws: BlogError(url: url, reason: .status(404))) {
      try await blog.client.store(for: PostQuery(id: 999).resilient).fetch()
    }
    #expect(blog.server.requestCount(for: "/posts/999") == 1)
    #expect(blog.reports == [])
  }

  @Test("The response of another server is not decoded as a blog")
  func notABlog() async throws {
    var router = Router()
    router.get("/posts") { _ in .status(200, "Not a blog.") }
    let server = LoopbackServer(router: router)
    try server.start()
    defer { server.stop() }
    let url = server.baseURL.appending(path: "posts")
    await #expect(throws: BlogError(url: url, reason: .notABlog)) {
      let _: [Post] = try await BlogAPI(url: server.baseURL).get("posts")
    }
  }

  @Test("An absent server is a temporary failure")
  func noServer() async throws {
    let api = BlogAPI(url: try #require(URL(string: absentServer)))
    let error = await #expect(throws: BlogError.self) {
      let _: [Post] = try await api.get("posts")
    }
    #expect(error?.reason == .noConnection("there is no server to connect to"))
    #expect(error?.isTemporary == true)
  }

  @Test("Concurrent readers share one request")
  func deduplication() async throws {
    let behaviour = ServerBehaviour(latency: .milliseconds(200))
    let blog = try Blog(behaviour)
    defer { blog.server.stop() }
    let store = blog.client.store(for: CommentsQuery(postID: 3).resilient)
    try await withThrowingTaskGroup { group in
      for _ in 0..<12 { group.addImmediateTask { try await store.fetch() } }
      for try await comments in group { #expect(comments.count == 4) }
    }
    #expect(blog.server.requestCount(for: "/posts/3/comments") == 1)
  }
}
