import LoopbackServer
import SharingOperation
import Testing

@testable import posts

@Suite @MainActor struct TourTests {
  @Test("The tour ends with one request for all readers")
  func lastLine() async throws {
    let blog = try Blog()
    defer { blog.server.stop() }
    let lines = Lines()
    let screen = Screen(.plain) { lines.add($0) }
    try await OperationClient.withCurrent(blog.client) {
      try await Tour.begin(on: screen, requestCount: blog.server.requestCount)
    }
    #expect(lines.all.last == "12 readers asked at once; the server was asked once\n")
    #expect(lines.all.contains("  \"The trouble with home networks\" by Caleb Whitford\n"))
  }

  @Test("The tour of an empty blog ends after the posts")
  func empty() async throws {
    var router = Router()
    router.get("/posts") { _ in try .json([Int]()) }
    let server = LoopbackServer(router: router)
    try server.start()
    defer { server.stop() }
    var context = OperationContext()
    context.blog = BlogAPI(url: server.baseURL)
    let client = OperationClient(context: context)
    let lines = Lines()
    let screen = Screen(.plain) { lines.add($0) }
    try await OperationClient.withCurrent(client) {
      try await Tour.begin(on: screen, requestCount: nil)
    }
    #expect(lines.all.contains("posts: 0 of them\n"))
  }
}
