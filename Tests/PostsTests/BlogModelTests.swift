import LoopbackServer
import Observation
import SharingOperation
import Synchronization
import Testing

@testable import posts

@Suite @MainActor struct BlogModelTests {
  @Test("The author follows the open post")
  func author() async throws {
    let blog = try Blog()
    defer { blog.server.stop() }
    let model = OperationClient.withCurrent(blog.client) { BlogModel() }
    #expect(model.post == nil)
    #expect(model.author == nil)
    #expect(model.byline == nil)
    model.open(1)
    for await author in model.$author.values where author != nil { break }
    #expect(model.author?.name == "Lena Aydin")
    model.open(2)
    #expect(model.author == nil)
    for await author in model.$author.values where author != nil { break }
    #expect(model.byline == #""How not to begin with night trains" by Caleb Whitford"#)
  }

  @Test("A cached author is not fetched again")
  func cachedAuthor() async throws {
    let blog = try Blog()
    defer { blog.server.stop() }
    let model = OperationClient.withCurrent(blog.client) { BlogModel() }
    for id in [2, 3] {
      model.open(id)
      for await author in model.$author.values where author != nil { break }
    }
    #expect(model.author?.name == "Caleb Whitford")
    #expect(!model.$author.isLoading)
    #expect(blog.server.requestCount(for: "/authors/:id") == 1)
  }

  @Test("A reader of the byline is notified when another post is opened")
  func tracking() async throws {
    let blog = try Blog()
    defer { blog.server.stop() }
    let model = OperationClient.withCurrent(blog.client) { BlogModel() }
    model.open(1)
    for await author in model.$author.values where author != nil { break }
    let notifications = Mutex(0)
    let byline = withObservationTracking {
      model.byline
    } onChange: {
      notifications.withLock { $0 += 1 }
    }
    #expect(byline == #""A short guide to a rooftop beehive" by Lena Aydin"#)
    model.open(2)
    #expect(notifications.withLock { $0 } == 1)
    #expect(model.byline == nil)
  }

  @Test("The comments are those of the open post")
  func comments() async throws {
    let blog = try Blog()
    defer { blog.server.stop() }
    let model = OperationClient.withCurrent(blog.client) { BlogModel() }
    model.showComments()
    #expect(!model.$comments.isBacked)
    model.open(3)
    try await model.$post.fetch()
    model.showComments()
    #expect(try await model.$comments.fetch().count == 4)
    #expect(model.comments?.count == 4)
  }
}
