// The code of the guide HowDoI: the build compiles it, and a test compares it with the guide.

// snippet: how do i
import Foundation
import Glibc
import Observation
import SharingOperation

struct Article: Codable, Sendable, Equatable, Identifiable {
  let id: Int
  var title: String
  var stars = 0
}

/// What the requests call. A test replaces the closures.
struct NewsService: Sendable {
  var article: @Sendable (_ id: Int) async throws -> Article = {
    Article(id: $0, title: "News \($0)")
  }
  var search: @Sendable (_ text: String) async throws -> [Article] = { [Article(id: 1, title: $0)] }
  var page: @Sendable (_ number: Int) async throws -> [Article] = { _ in [] }
  var rate: @Sendable (_ id: Int, _ stars: Int) async throws -> Void = { _, _ in }
}

extension OperationContext {
  var news: NewsService {
    get { self[NewsKey.self] }
    set { self[NewsKey.self] = newValue }
  }

  private enum NewsKey: Key {
    static var defaultValue: NewsService { NewsService() }
  }
}

struct ArticleQuery: SimpleQueryRequest {
  let id: Int

  var path: OperationPath { ["articles", id] }

  func fetch(in context: OperationContext) async throws -> Article {
    try await context.news.article(id)
  }
}

struct ArticleSearch: SimpleQueryRequest {
  let text: String

  var path: OperationPath { ["articles", "search", text] }

  func fetch(in context: OperationContext) async throws -> [Article] {
    try await context.news.search(text)
  }
}

struct RateArticle: SimpleMutationRequest, Hashable {
  struct Arguments: Codable, Sendable {
    let id: Int
    let stars: Int
  }

  func mutate(with arguments: Arguments, in context: OperationContext) async throws {
    try await context.news.rate(arguments.id, arguments.stars)
  }
}
// end

// snippet: get a value once from the cache if it is fresh
func title(of id: Int, in client: OperationClient) async throws -> String {
  try await client.ensure(ArticleQuery(id: id).stale(after: .seconds(60))).title
}
// end

// snippet: display it in a model
@MainActor
@Observable
final class ArticleModel {
  @ObservationIgnored @SharedQuery(ArticleQuery(id: 1)) var article

  var headline: String { article?.title ?? ($article.isLoading ? "loading" : "no article") }
}
// end

// snippet: show the status and the age
func describe(_ store: OperationStore<ArticleQuery.State>) -> String {
  let status: String
  switch store.status {
  case .idle: status = store.isRestoring ? "is read from the storage" : "not fetched yet"
  case .loading: status = "loading"
  case .paused: status = "waits for the connection"
  case .result(.success): status = "fetched"
  case .result(.failure(let error)): status = "failed: \(error)"
  }
  guard let date = store.valueLastUpdatedAt else { return status }
  let age = store.context.operationClock.now().timeIntervalSince(date)
  return "\(status); the value is \(Int(age)) s old"
}
// end

// snippet: select a part of a value
struct TitleModel {
  @SharedQuery(ArticleQuery(id: 1), select: \.title) var title
}

func titles(in client: OperationClient) -> StateStream<String?> {
  client.store(for: ArticleQuery(id: 1)).values(select: { $0?.title })
}
// end

// snippet: deselect
@MainActor
final class SelectionModel {
  @SharedQuery<ArticleQuery.State> var article

  func select(_ id: Int?) {
    $article.bind(to: id.map(ArticleQuery.init))
  }

  func deselect() { $article.bind(to: nil) }
}
// end

// snippet: search as you type with debounce and the previous value
@MainActor
final class ArticleSearchModel {
  @SharedQuery<ArticleSearch.State> var results

  func type(_ text: String) {
    $results.bind(
      to: text.isEmpty ? nil : ArticleSearch(text: text), debouncedBy: .milliseconds(300),
      keepingPrevious: true)
  }

  var isDimmed: Bool { $results.isPrevious }
}
// end

// snippet: keep the previous value while the next one loads
extension SelectionModel {
  func selectSmoothly(_ id: Int) {
    $article.bind(to: ArticleQuery(id: id), keepingPrevious: true)
  }

  var isOfEarlierSelection: Bool { $article.isPrevious }
}
// end

// snippet: an infinite list
func articlePages() -> Paginated<Int, [Article]> {
  Paginated(
    path: ["article-pages"], initialPageId: 0,
    nextPageId: { page, _ in page.value.isEmpty ? nil : page.id + 1 }
  ) { paging, context in
    try await context.news.page(paging.pageId)
  }
}

@MainActor
@Observable
final class ArticleListModel {
  @ObservationIgnored @SharedQuery(articlePages()) var pages

  var articles: [Article] { pages.flatMap(\.value) }
  var canShowMore: Bool { $pages.hasNextPage && !$pages.isLoadingNextPage }

  func showMore() async throws {
    try await $pages.fetchNextPage()
  }
}

func allArticles(in client: OperationClient) async throws -> [Article] {
  let store = client.store(for: articlePages())
  while try await store.fetchNextPage() != nil {}
  return store.currentValue.flatMap(\.value)
}
// end

// snippet: use it from an actor
actor Rating {
  private let store: OperationStore<ArticleQuery.State>
  private(set) var best = 0

  init(client: OperationClient) { store = client.store(for: ArticleQuery(id: 1)) }

  func update() async throws {
    best = max(best, try await store.fetch().stars)
  }

  func follow() async {
    for await article in store.values { best = max(best, article?.stars ?? 0) }
  }
}
// end

// snippet: use it from a class that is not observable
final class ArticlePrinter: Sendable {
  private let subscription: OperationSubscription

  init(client: OperationClient) {
    subscription = client.store(for: ArticleQuery(id: 1)).subscribe { event in
      if case .stateChanged(let state) = event { print(state.currentValue?.title ?? "nothing yet") }
    }
  }
}
// end

// snippet: poll
func polledArticle(_ id: Int) -> some QueryRequest<Article, ArticleQuery.State> {
  ArticleQuery(id: id).rerun(every: .seconds(30))
}
// end

// snippet: poll only when it matters
func politelyPolledArticle(
  _ id: Int, isVisible: Broadcast<Bool>
) -> some QueryRequest<Article, ArticleQuery.State> {
  ArticleQuery(id: id).rerun(every: .seconds(30), while: .connected && .latest(of: isVisible))
}

func articleUntilItIsRated(_ id: Int) -> some QueryRequest<Article, ArticleQuery.State> {
  ArticleQuery(id: id).rerun(while: { $0.currentValue?.stars == 0 }, every: .seconds(5))
}
// end

// snippet: refetch when the program resumes or the connection is back
func resumingArticle(_ id: Int) -> some QueryRequest<Article, ArticleQuery.State> {
  ArticleQuery(id: id)
    .stale(after: .seconds(60))
    .rerunOnChange(of: .foreground)
    .rerunOnChange(of: .connected)
}
// end

// snippet: stream values from a socket
func liveStars(
  from socket: @escaping @Sendable () -> AsyncThrowingStream<Int, any Error>
) -> some QueryRequest<Int, QueryState<Int, any Error>> {
  Query(path: ["live-stars"], newestOf: { _ in socket() })
    .retry(limit: 100)
    .backoff(.exponential(.seconds(1)).jittered().capped(at: .seconds(30)))
}
// end

// snippet: invalidate one value or a family of values
func invalidateArticles(in client: OperationClient) {
  client.invalidate(ArticleQuery(id: 1))
  client.invalidate(matching: ["articles"])
  client.invalidate(matching: ["articles", "search"], where: .observed)
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
    .backoff(.exponential(.milliseconds(500)).jittered().capped(at: .seconds(20)))
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
