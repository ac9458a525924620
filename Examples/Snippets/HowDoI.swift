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

struct Headlines: Codable, Sendable, Equatable {
  var texts: [String] = []
  var tag: String?
}

/// What the requests call. A test replaces the closures.
struct NewsService: Sendable {
  var article: @Sendable (_ id: Int) async throws -> Article = {
    Article(id: $0, title: "News \($0)")
  }
  var search: @Sendable (_ text: String) async throws -> [Article] = { [Article(id: 1, title: $0)] }
  var page: @Sendable (_ number: Int) async throws -> [Article] = { _ in [] }
  /// Returns `nil` if the headlines still have the tag.
  var headlines: @Sendable (_ tag: String?) async throws -> Headlines? = { _ in Headlines() }
  var rate: @Sendable (_ id: Int, _ stars: Int) async throws -> Void = { _, _ in }
  var signIn: @Sendable () async throws -> String = { "token" }
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
    .retry(limit: .max)
    .backoff(.exponential(.seconds(1)).capped(at: .seconds(30)).jittered())
}
// end
