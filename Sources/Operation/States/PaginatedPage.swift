/// One page of a paginated request.
public struct PaginatedPage<ID: Hashable & Sendable, Value: Sendable>: Identifiable, Sendable {
  /// What tells the page from the others. No page stands beside one whose identifier is not equal to
  /// itself, such as `Double.nan`.
  public let id: ID
  /// What the page holds.
  public var value: Value
  /// The pages beside this one; nil for a page that no run has fetched.
  var edges: PageEdges<ID>?

  /// Creates a page.
  public init(id: ID, value: Value) {
    self.id = id
    self.value = value
  }
}

/// The identifiers of the pages beside one, as the request told them of this page.
struct PageEdges<ID: Hashable & Sendable>: Sendable {
  let before: ID?
  let after: ID?
}

extension PaginatedPage: Equatable where Value: Equatable {
  /// Tells whether both have the same identifier and hold equal values.
  public static func == (lhs: PaginatedPage, rhs: PaginatedPage) -> Bool {
    lhs.id == rhs.id && lhs.value == rhs.value
  }
}

extension PaginatedPage: Hashable where Value: Hashable {
  /// Feeds the identifier and the value.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(id)
    hasher.combine(value)
  }
}

/// The pages of a paginated request, in their order and by their identifiers.
public typealias PaginatedPages<PageID: Hashable & Sendable, PageValue: Sendable> =
  IdentifiedArrayOf<PaginatedPage<PageID, PageValue>>

/// What a fetch of one page has to know.
public struct PaginatedPaging<PageID: Hashable & Sendable, PageValue: Sendable>: Sendable {
  /// The page that is asked for.
  public let pageId: PageID
  /// The pages that were there when the run began, with those that it has fetched since.
  public let pages: PaginatedPages<PageID, PageValue>
  /// What the run is for.
  public let kind: PaginatedRunKind
}

/// What a run of a paginated request is for.
public enum PaginatedRunKind: String, Sendable, Hashable {
  /// The first page of all; what every run means while there is no page.
  case initialPage
  /// The page after the last one that is there.
  case nextPage
  /// The page before the first one that is there.
  case previousPage
  /// As many pages as are there, from the first one on.
  case allPages
  /// What the request's ``PaginatedRefetch`` says, again.
  case refetch
}

/// Which pages a plain `fetch` of a paginated store, and a run by itself, fetch again.
public enum PaginatedRefetch<PageID: Hashable & Sendable, PageValue: Sendable>: Sendable {
  /// All that are there, one after the other, from the first one on.
  case allPages
  /// The first one that is there.
  case firstPage
  /// Those that a closure picks from what is there.
  case pages(@Sendable (PaginatedPages<PageID, PageValue>) -> [PageID])
}

/// What one run of a paginated request gives.
public struct PaginatedResult<PageID: Hashable & Sendable, PageValue: Sendable>: Sendable {
  /// What the run was for.
  public let kind: PaginatedRunKind
  /// The pages that it fetched; none where there was no further page.
  public let pages: PaginatedPages<PageID, PageValue>
  /// Where the pages go.
  let place: PagePlace<PageID>
}

/// What a run gives where that may be a part of the value only.
protocol PartialResult {
  var isPart: Bool { get }
  /// Whether it has a place in a value.
  func fits(in value: any Sendable) -> Bool
}

extension PaginatedResult: PartialResult {
  var isPart: Bool { place != .whole && place != .initial }

  func fits(in value: any Sendable) -> Bool {
    guard let pages = value as? PaginatedPages<PageID, PageValue> else { return true }
    return switch place {
    case .after(let neighbour), .before(let neighbour): pages.index(id: neighbour) != nil
    case .whole, .initial, .present: true
    }
  }
}

/// Where pages that a run has fetched go among those that are there.
enum PagePlace<PageID: Hashable & Sendable>: Sendable, Equatable {
  /// They take the place of all.
  case whole
  /// They are the first of all: they take the place of all, unless they are there.
  case initial
  /// They replace the pages with their identifiers.
  case present
  /// Behind the page that they were found from, as long as that is there.
  case after(PageID)
  /// Before the page that they were found from, as long as that is there.
  case before(PageID)
}
