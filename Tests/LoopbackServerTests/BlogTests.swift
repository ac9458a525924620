import Foundation
import LoopbackServer
import Testing

@Suite struct BlogTests {
  private typealias Post = BlogServer.Post

  @Test func sameSeedMakesTheSameBlog() {
    #expect(BlogData(seed: 7) == BlogData(seed: 7))
    #expect(BlogData(seed: 7) != BlogData(seed: 8))
  }

  @Test func postsComeInPages() async throws {
    let posts = BlogData().posts
    try await withServer { server async throws in
      let firstPage = try await server.fetch("/posts")
      #expect(try firstPage.decode([Post].self) == Array(posts[..<20]))
      #expect(firstPage.header("X-Total-Count") == "60")
      #expect(firstPage.header("Content-Type") == "application/json")

      let second = try await server.fetch("/posts?page=2&size=7")
      #expect(try second.decode([Post].self) == Array(posts[7..<14]))
      let last = try await server.fetch("/posts?page=9&size=7")
      #expect(try last.decode([Post].self) == Array(posts[56...]))
      for page in ["10", "\(Int.max)"] {
        #expect(try await server.fetch("/posts?page=\(page)&size=7").decode([Post].self).isEmpty)
      }
    }
  }

  @Test(arguments: ["page=0", "page=-1", "page=x", "size=0", "size=101", "page="])
  func badPageIsRefused(query: String) async throws {
    try await withServer { server async throws in
      #expect(try await server.fetch("/posts?\(query)").status == 400)
    }
  }

  @Test func singlePostAndItsComments() async throws {
    let data = BlogData()
    try await withServer { server async throws in
      #expect(try await server.fetch("/posts/3").decode(Post.self) == data.posts[2])
      let comments = try await server.fetch("/posts/3/comments").decode([BlogServer.Comment].self)
      #expect(comments == data.comments.filter { $0.postId == 3 })
      #expect(try await server.fetch("/posts/61").status == 404)
      #expect(try await server.fetch("/posts/61/comments").status == 404)
      #expect(try await server.fetch("/posts/three").status == 400)
    }
  }

  @Test func authors() async throws {
    let authors = BlogData().authors
    try await withServer { server async throws in
      #expect(try await server.fetch("/authors").decode([BlogServer.Author].self) == authors)
      #expect(try await server.fetch("/authors/2").decode(BlogServer.Author.self) == authors[1])
      #expect(try await server.fetch("/authors/99").message == "There is no author 99.")
    }
  }

  @Test func postWithOneKeyIsAddedOnce() async throws {
    let blog = BlogRoutes()
    try await withServer(Router(blog)) { server async throws in
      let body = #"{"title": "Twice", "body": "", "authorId": 1}"#
      for key in ["a", "a", "b", "a"] {
        let answer = try await server.fetch("/posts", method: "POST", body: body, key: key)
        #expect(answer.status == 201)
        #expect(try answer.decode(Post.self).id == (key == "a" ? 61 : 62))
      }
      _ = try await server.fetch("/posts", method: "POST", body: body)
    }
    #expect(blog.deliveries.map(\.key) == ["a", "b"])
    #expect(blog.deliveries.map(\.count) == [3, 1])
    #expect(blog.deliveries.map(\.post.id) == [61, 62])
  }

  @Test func createdPostCanBeRead() async throws {
    try await withServer { server async throws in
      let draft = #"{"title": "Über uns", "body": "Hello", "authorId": 2}"#
      let created = try await server.fetch("/posts", method: "POST", body: draft)
      #expect(created.status == 201)
      #expect(created.header("Location") == "/posts/61")
      let post = try created.decode(Post.self)
      #expect(post.id == 61 && post.title == "Über uns" && post.authorId == 2)
      #expect(try await server.fetch("/posts/61").decode(Post.self) == post)
    }
  }

  @Test(arguments: [
    ("not JSON", 400), (#"{"title": "No body"}"#, 400),
    (#"{"title": "", "body": "", "authorId": 2}"#, 422),
    (#"{"title": "Hi", "body": "", "authorId": 99}"#, 422),
  ])
  func badDraftIsRefused(draft: String, status: Int) async throws {
    try await withServer { server async throws in
      let answer = try await server.fetch("/posts", method: "POST", body: draft)
      #expect(answer.status == status)
      #expect(try !answer.message.isEmpty)
      #expect(try await server.fetch("/posts/61").status == 404)
    }
  }
}
