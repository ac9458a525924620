// The rest of the code of the guide HowDoI: changes, failures, and programs.

import Foundation
import Glibc
import SharingOperation

// snippet: invalidate one value or a family of values
func invalidateArticles(in client: OperationClient) {
  client.invalidate(ArticleQuery(id: 1))
  client.invalidate(matching: ["articles"])
  client.invalidate(matching: ["articles", "search"], where: .observed)
}
// end

// snippet: invalidate by tag
struct ArticleTag: SimpleQueryRequest, Hashable {
  let name: String

  func fetch(in context: OperationContext) async throws {}
}

struct TaggedArticleQuery: SimpleQueryRequest, Hashable {
  let id: Int
  let tag: String

  func fetch(in context: OperationContext) async throws -> Article {
    try await context.ensure(ArticleTag(name: tag).neverStale())
    return try await context.news.article(id)
  }
}

func invalidateArticles(taggedWith name: String, in client: OperationClient) {
  client.invalidate(ArticleTag(name: name))
}
// end

// snippet: fetch only what has changed
struct HeadlinesQuery: SimpleQueryRequest, Hashable {
  func fetch(in context: OperationContext) async throws -> Headlines {
    // There is none in the first run.
    let known = context.value(of: self)
    return try await context.news.headlines(known?.tag) ?? known ?? Headlines()
  }
}
// end

// snippet: call a mutation and update what it changed
func rate(_ id: Int, _ stars: Int, in client: OperationClient) async throws {
  try await client.store(for: RateArticle())
    .mutate(with: RateArticle.Arguments(id: id, stars: stars))
  client.invalidate(ArticleQuery(id: id))
}
// end

// snippet: show an edit at once
func rateAtOnce(_ id: Int, _ stars: Int, in client: OperationClient) async throws {
  try await client.store(for: ArticleQuery(id: id)).optimistically { article in
    article?.stars = stars
  } while: {
    try await client.store(for: RateArticle())
      .mutate(with: RateArticle.Arguments(id: id, stars: stars))
  }
}
// end

// snippet: undo an edit
func rateWithUndo(_ id: Int, _ stars: Int, in client: OperationClient) -> Task<Void, any Error> {
  Task {
    let store = client.store(for: ArticleQuery(id: id))
    try await store.optimistically {
      $0?.stars = stars
    } while: {
      try await store.context.operationClock.sleep(for: .seconds(5))
      try await client.store(for: RateArticle())
        .mutate(with: RateArticle.Arguments(id: id, stars: stars))
    }
  }
}
// end

// snippet: send changes one after the other and wait for a connection
func patientRating() -> some MutationRequest<RateArticle.Arguments, Void>
  & StatefulOperationRequest<Void, RateArticle.State>
{
  RateArticle().networkMode(.online).serialized(in: "ratings")
}
// end

// snippet: limit how many runs are in flight
func limitedArticle(_ id: Int) -> some QueryRequest<Article, ArticleQuery.State> {
  ArticleQuery(id: id).limited(to: 4, in: "news service")
}
// end

// snippet: batch many keys into one request
let starsByArticle = BatchLoader<Int, Int>(delay: .milliseconds(5), maxSize: 100) { ids in
  Dictionary(uniqueKeysWithValues: ids.map { ($0, 0) })
}

func stars(of id: Int) -> Query<Int, any Error> {
  Query(path: ["stars", id]) { context in try await starsByArticle.load(id, in: context) }
}
// end

// snippet: retry with a timeout for each attempt
func stubbornArticle(_ id: Int) -> some QueryRequest<Article, ArticleQuery.State> {
  ArticleQuery(id: id)
    .timeout(after: .seconds(5))
    .retry(limit: 5)
    .backoff(.exponential(.milliseconds(500)).capped(at: .seconds(20)).jittered())
}
// end

// snippet: wait as long as the server asks
struct Busy: Error {
  let retryAfter: Duration
}

func obedientArticle(_ id: Int) -> some QueryRequest<Article, QueryState<Article, any Error>> {
  Query(path: ["obedient", id]) { context in
    do {
      return try await context.news.article(id)
    } catch let error as Busy where !context.isLastRetryAttempt {
      try await context.operationClock.sleep(for: error.retryAfter)
      throw error
    }
  }
  .retry(limit: 5)
  .backoff(.noBackoff)
}
// end

// snippet: refresh a token once for all requests
struct TokenQuery: SimpleQueryRequest, Hashable {
  func fetch(in context: OperationContext) async throws -> String {
    try await context.news.signIn()
  }
}

func token() -> some QueryRequest<String, TokenQuery.State> { TokenQuery().neverStale() }

struct Unauthorized: Error {}

extension OperationContext {
  func authorized<Value>(_ send: (_ token: String) async throws -> Value) async throws -> Value {
    guard let client = operationClient else { throw Unauthorized() }
    let refused = try await client.ensure(token())
    do { return try await send(refused) } catch is Unauthorized {
      let store = client.store(for: token())
      // Of the requests that were refused with this token, the first one invalidates it.
      store.withExclusiveAccess {
        if store.currentValue == refused, !store.isStale { store.invalidate() }
      }
      return try await send(client.ensure(token()))
    }
  }
}
// end

// snippet: inject a service
func makeNewsClient(_ service: NewsService) -> OperationClient {
  var context = OperationContext()
  context.news = service
  return OperationClient(context: context)
}
// end

// snippet: share one client
@MainActor
func makeArticleModel(in client: OperationClient) -> ArticleModel {
  OperationClient.withCurrent(client) { ArticleModel() }
}
// end

// snippet: use several clients
struct AccountModel {
  @SharedQuery<ArticleQuery.State> var article

  init(account: OperationClient) {
    _article = SharedQuery(ArticleQuery(id: 1), client: account)
  }
}
// end

// snippet: log out, and show nothing of this user to the next one
func logOut(of client: OperationClient) {
  for call in client.outbox.calls { client.outbox.discard(call.id) }
  client.reset(matching: [])
  client.invalidate(matching: [])
}
// end

// snippet: use a client for each request of a server
func respond(to userToken: String, id: Int, using service: NewsService) async throws -> String {
  var context = OperationContext()
  context.news = service
  // One caller waits for the answer, so a failure is reported at once.
  let client = OperationClient(defaults: OperationDefaults(retryLimit: 0), context: context)
  return try await OperationClient.withCurrent(client) {
    async let header = client.ensure(ArticleQuery(id: id)).title
    async let body = client.ensure(ArticleQuery(id: id)).stars
    return try await "\(userToken): \(header), \(body) stars"
  }
}
// end

// snippet: use it in a commandline tool
enum Tool {
  static func main() async {
    let client = OperationClient(defaults: OperationDefaults(retryLimit: 1))
    do {
      print(try await client.fetch(ArticleQuery(id: 1).timeout(after: .seconds(10))).title)
    } catch {
      FileHandle.standardError.write(Data("tool: \(error)\n".utf8))
      exit(EXIT_FAILURE)
    }
  }
}
// end

// snippet: shut down in time
/// Receives SIGTERM and SIGINT, which end a process without a handler.
struct EndSignals {
  private let sources: [any DispatchSourceSignal]
  private let received: AsyncStream<Void>

  init() {
    let (received, continuation) = AsyncStream.makeStream(of: Void.self)
    self.received = received
    sources = [SIGTERM, SIGINT].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number)
      source.setEventHandler { continuation.yield() }
      source.resume()
      return source
    }
  }

  /// Returns when the process has received one of the signals.
  func wait() async {
    for await _ in received { break }
    for source in sources { source.cancel() }
  }
}

enum Daemon {
  static func main() async {
    let signals = EndSignals()
    let client = OperationClient()
    let subscription = client.store(for: polledArticle(1)).subscribe { print($0) }
    await signals.wait()
    print(await client.shutdown(within: .seconds(5)))
    subscription.cancel()
  }
}
// end

// snippet: persist values and changes
func startPersistently(in directory: String) async throws -> OperationClient {
  let client = OperationClient(storage: try FileStorage(directory: directory))
  try await client.resumeMutations { outbox in outbox.register(RateArticle().persisted()) }
  return client
}

func savedArticle(_ id: Int) -> some QueryRequest<Article, ArticleQuery.State> {
  ArticleQuery(id: id).persisted(maxAge: .seconds(86_400))
}
// end

// snippet: log
struct FailureLogger: OperationLogger {
  func log(_ event: OperationClientEvent) {
    if case .runEnded(_, .failure(let error), _) = event.occurrence {
      print("\(event.path) failed: \(error)")
    }
  }
}

func logEverything(of client: OperationClient) -> OperationSubscription {
  .combined([client.log(to: StandardErrorLogger()), client.log(to: FailureLogger())])
}
// end

// snippet: count
func counts(of client: OperationClient) -> String {
  let total = client.statistics.total
  return "\(total.runs) runs, \(total.hits) answers from the cache, \(total.joins) joins"
}
// end

// snippet: test with time
func articleIsStaleAfterAMinute() async throws -> Bool {
  let clock = ManualClock()
  let client = OperationClient(defaults: .testing, clock: clock)
  let store = client.store(for: ArticleQuery(id: 1).stale(after: .seconds(60)))
  try await store.fetch()
  await clock.advance(by: .seconds(60))
  return store.isStale
}
// end

// snippet: test without a network
func ratingWaitsOffline() async throws -> Bool {
  let network = ManualNetworkObserver(.disconnected)
  var context = OperationContext()
  context.news.rate = { _, _ in }
  context.networkObserver = network
  let client = OperationClient(defaults: .testing, clock: ManualClock(), context: context)
  let store = client.store(for: patientRating())
  let call = Task { try await store.mutate(with: RateArticle.Arguments(id: 1, stars: 5)) }
  for await status in store.statuses where status.isPaused { break }
  network.set(.connected)
  try await call.value
  return store.status.isSuccess
}
// end
