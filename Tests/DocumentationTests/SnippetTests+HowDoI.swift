import SharingOperation
import Synchronization
import Testing

@testable import Snippets

@Suite struct HowDoITests {
  /// Returns a client whose news service has one article for each identifier.
  private func makeNews(
    clock: ManualClock = ManualClock(), _ change: (inout NewsService) -> Void = { _ in }
  ) -> OperationClient {
    makeClient(clock: clock) { change(&$0.news) }
  }

  @Test("A title is read from the cache while it is fresh") func cached() async throws {
    let calls = Atomic(0)
    let clock = ManualClock()
    let client = makeNews(clock: clock) {
      $0.article = { id in
        Article(id: id, title: "\(calls.wrappingAdd(1, ordering: .relaxed).newValue)")
      }
    }
    #expect(try await title(of: 1, in: client) == "1")
    #expect(try await title(of: 1, in: client) == "1")
    await clock.advance(by: .seconds(60))
    #expect(try await title(of: 1, in: client) == "2")
  }

  @Test("Titles are not sent again when the stars change") func selected() async throws {
    let client = makeNews()
    // An automatic run could end after a write.
    client.setDefaults(matching: ArticleQuery(id: 1).path) { $0.runsAutomatically = false }
    let store = client.store(for: ArticleQuery(id: 1))
    store.currentValue = Article(id: 1, title: "A")
    var values = titles(in: client).makeAsyncIterator()
    #expect(await values.next() == "A")
    store.currentValue?.stars = 3
    store.currentValue?.title = "B"
    #expect(await values.next() == "B")
  }

  @Test("A selection is displayed until it is deselected") @MainActor
  func selection() async throws {
    try await OperationClient.withCurrent(makeNews()) {
      let model = SelectionModel()
      model.select(1)
      let article = try await model.$article.value()
      #expect(article.title == "News 1")
      model.deselect()
      #expect(model.article == nil && !model.$article.isBacked)
    }
  }

  @Test("A search begins after the last key, and keeps the earlier result") @MainActor
  func search() async throws {
    let clock = ManualClock()
    try await OperationClient.withCurrent(makeNews(clock: clock)) {
      let model = ArticleSearchModel()
      model.type("a")
      model.type("ab")
      await clock.advance(by: .milliseconds(300))
      let first = try await model.$results.value()
      #expect(first.map(\.title) == ["ab"])
      model.type("abc")
      await clock.advance(by: .milliseconds(300))
      let second = try await model.$results.value()
      #expect(second.map(\.title) == ["abc"] && !model.isDimmed)
    }
  }

  @Test("An actor keeps the best rating") func actor() async throws {
    let client = makeNews { $0.article = { id in Article(id: id, title: "", stars: 4) } }
    let rating = Rating(client: client)
    try await rating.update()
    #expect(await rating.best == 4)
  }

  @Test("An edit is displayed at once, and removed by undo") func undo() async throws {
    let clock = ManualClock()
    let calls = Atomic(0)
    let client = makeNews(clock: clock) {
      $0.rate = { _, _ in calls.wrappingAdd(1, ordering: .relaxed) }
    }
    let store = client.store(for: ArticleQuery(id: 1))
    try await store.fetch()
    let edit = rateWithUndo(1, 5, in: client)
    await clock.sleepers(atLeast: 1)
    #expect(store.currentValue?.stars == 5)
    edit.cancel()
    await #expect(throws: CancellationError.self) { try await edit.value }
    #expect(store.currentValue?.stars == 0 && calls.load(ordering: .relaxed) == 0)
    try await rateAtOnce(1, 4, in: client)
    #expect(store.currentValue?.stars == 4 && calls.load(ordering: .relaxed) == 1)
  }

  @Test("All values with a prefix are out of date after an invalidation")
  func invalidation() async throws {
    let client = makeNews()
    let article = client.store(for: ArticleQuery(id: 2).neverStale())
    try await article.fetch()
    invalidateArticles(in: client)
    #expect(article.isStale)
  }

  @Test("A request of a server fetches a value once for two parts") func server() async throws {
    let calls = Atomic(0)
    let service = NewsService(article: { id in
      calls.wrappingAdd(1, ordering: .relaxed)
      return Article(id: id, title: "News", stars: 2)
    })
    #expect(try await respond(to: "Ada", id: 7, using: service) == "Ada: News, 2 stars")
    #expect(calls.load(ordering: .relaxed) == 1)
  }

  @Test("Hits are counted") func counting() async throws {
    let client = makeNews()
    _ = counts(of: client)
    for _ in 1...2 { _ = try await title(of: 1, in: client) }
    #expect(counts(of: client) == "1 runs, 1 answers from the cache, 0 joins")
  }

  @Test("The tests of the guide pass") func testing() async throws {
    #expect(try await articleIsStaleAfterAMinute())
    #expect(try await ratingWaitsOffline())
  }

  @Test("A list has the articles of all pages, up to an empty one") func infiniteList() async throws
  {
    let client = makeNews {
      $0.page = { number in
        number < 2 ? [Article(id: number, title: "News \(number)")] : []
      }
    }
    #expect(try await allArticles(in: client).map(\.id) == [0, 1])
    #expect(try await allArticles(in: client).map(\.id) == [0, 1])
  }

  @Test("The status and the age of a value are described") func statusAndAge() async throws {
    struct Refused: Error {}
    let clock = ManualClock()
    let client = makeNews(clock: clock) {
      $0.article = { id in
        if id == 2 { throw Refused() }
        return Article(id: id, title: "News")
      }
    }
    let store = client.store(for: ArticleQuery(id: 1))
    #expect(describe(store) == "not fetched yet")
    try await store.fetch()
    await clock.advance(by: .seconds(7))
    #expect(describe(store) == "fetched; the value is 7 s old")
    let failing = client.store(for: ArticleQuery(id: 2))
    _ = try? await failing.fetch()
    #expect(describe(failing) == "failed: Refused()")
  }

  @Test("A batch loads all keys with one call") func batch() async throws {
    #expect(try await OperationClient().fetch(stars(of: 3)) == 0)
  }

  @Test("An article is invalidated by the tag that its last run has read") func tag() async throws {
    let calls = Atomic(0)
    let client = makeNews {
      $0.article = { id in
        calls.wrappingAdd(1, ordering: .relaxed)
        return Article(id: id, title: "News")
      }
    }
    func load() async throws -> Int {
      for id in 1...2 { _ = try await client.ensure(TaggedArticleQuery(id: id, tag: "tag \(id)")) }
      return calls.load(ordering: .relaxed)
    }
    #expect(try await load() == 2)
    #expect(try await load() == 2)
    invalidateArticles(taggedWith: "tag 2", in: client)
    #expect(try await load() == 3)
    #expect(try await load() == 3)
  }

  @Test("Headlines are sent with their tag, and kept with a new date if nothing has changed")
  func conditional() async throws {
    let tags = Mutex<[String?]>([])
    let clock = ManualClock()
    let client = makeNews(clock: clock) {
      $0.headlines = { tag in
        tags.withLock { $0.append(tag) }
        return tag == "1" ? nil : Headlines(texts: ["a"], tag: "1")
      }
    }
    let store = client.store(for: HeadlinesQuery())
    let first = try await store.fetch()
    await clock.advance(by: .seconds(60))
    #expect(try await store.fetch() == first && first.texts == ["a"])
    #expect(tags.withLock { $0 } == [nil, "1"])
    #expect(store.valueLastUpdatedAt == clock.now())
  }

  @Test("A retry waits as long as the server asks, and the last failure waits no more")
  func retryAfter() async throws {
    let calls = Atomic(0)
    let clock = ManualClock()
    let client = makeNews(clock: clock) {
      $0.article = { id in
        if calls.wrappingAdd(1, ordering: .relaxed).newValue != 2 || id == 2 {
          throw Busy(retryAfter: .seconds(7))
        }
        return Article(id: id, title: "News")
      }
    }
    let fetch = Task { try await client.fetch(obedientArticle(1)) }
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(6))
    #expect(calls.load(ordering: .relaxed) == 1)
    await clock.advance(by: .seconds(1))
    #expect(try await fetch.value.title == "News")
    let failing = Task { try await client.fetch(obedientArticle(2)) }
    for _ in 1...5 {
      await clock.sleepers(atLeast: 1)
      await clock.advance(by: .seconds(7))
    }
    await #expect(throws: Busy.self) { try await failing.value }
    #expect(calls.load(ordering: .relaxed) == 8)
  }
}
