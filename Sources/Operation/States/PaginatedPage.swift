/// One page of a paginated request.
public struct PaginatedPage<ID: Hashable & Sendable, Value: Sendable>: Identifiable, Sendable {
  /// The identifier of the page, which is unique among the pages of a state.
  ///
  /// An identifier that is not equal to itself, such as `Double.nan`, is reported, and no further
  /// page is fetched before or after its page.
  public let id: ID
  /// The content of the page.
  public var value: Value { didSet { edges = nil } }
  /// The identifiers of the pages before and after this one; `nil` until the request has found
  /// them for the present value.
  var edges: PageEdges<ID>?

  /// Creates a page.
  public init(id: ID, value: Value) {
    self.id = id
    self.value = value
  }
}

extension PaginatedPage: Equatable where Value: Equatable {
  /// Returns a Boolean value that indicates whether both pages have the same identifier and equal
  /// values.
  public static func == (lhs: PaginatedPage, rhs: PaginatedPage) -> Bool {
    lhs.id == rhs.id && lhs.value == rhs.value
  }
}

extension PaginatedPage: Hashable where Value: Hashable {
  /// Hashes the identifier and the value.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(id)
    hasher.combine(value)
  }
}

extension PaginatedPage: Codable where ID: Codable, Value: Codable {
  /// The edges are not saved: the request finds them again.
  private enum CodingKeys: CodingKey { case id, value }
}

extension PaginatedPage: CustomStringConvertible, CustomDebugStringConvertible {
  /// The identifier and the value, such as `PaginatedPage(id: 0, value: ["a"])`.
  public var description: String {
    describe(as: "PaginatedPage", "id: \(describe(id))", "value: \(describe(value))")
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

/// The pages of a paginated request, in their order and by their identifiers.
public typealias PaginatedPages<PageID: Hashable & Sendable, PageValue: Sendable> =
  IdentifiedArrayOf<PaginatedPage<PageID, PageValue>>

/// The input of a fetch of one page.
public struct PaginatedPaging<PageID: Hashable & Sendable, PageValue: Sendable>: Sendable {
  /// The identifier of the page to fetch.
  public let pageId: PageID
  /// The pages that the state had when the run began, with those that the run has fetched since.
  public let pages: PaginatedPages<PageID, PageValue>
  /// The kind of the run.
  public let kind: PaginatedRunKind

  /// Creates the input of a fetch, to call a request without a store.
  public init(
    pageId: PageID, pages: PaginatedPages<PageID, PageValue> = [],
    kind: PaginatedRunKind = .initialPage
  ) {
    self.pageId = pageId
    self.pages = pages
    self.kind = kind
  }
}

extension PaginatedPaging: CustomStringConvertible, CustomDebugStringConvertible {
  /// The identifier of the page, the kind of the run, and the identifiers of the pages.
  public var description: String {
    describe(
      as: "PaginatedPaging", "pageId: \(describe(pageId))", kind.rawValue,
      "pages: \(describe(pages.ids))")
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

/// The identifiers of the pages before and after a page, as the request returned them for it.
struct PageEdges<ID: Hashable & Sendable>: Sendable {
  let before: ID?
  let after: ID?
}

/// Finds the pages before and after the pages that a user writes. It is called with no lock held.
struct PageEdgeFinder<PageID: Hashable & Sendable, PageValue: Sendable>: Sendable {
  typealias Pages = PaginatedPages<PageID, PageValue>

  let edges:
    @Sendable (PaginatedPage<PageID, PageValue>, Pages, OperationContext) -> PageEdges<PageID>

  /// Sets the edges of the first and the last page, even if they have some, and with a limit those of all. A
  /// run with a limit of its own finds those that it needs: see `PageWalk.newEnd`.
  func complete(_ pages: inout Pages, in context: OperationContext) {
    let isLimited = context.settings.values.pages.limit < .max
    for index in stride(from: 0, to: pages.count, by: isLimited ? 1 : max(1, pages.count - 1)) {
      let found = edges(pages[index], pages, context)
      pages.update(at: index) { $0.edges = found }
    }
  }
}
