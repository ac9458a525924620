/// The pages that a plain `fetch` of a paginated store, and a run that starts automatically, fetch
/// again.
public enum PaginatedRefetch<PageID: Hashable & Sendable, PageValue: Sendable>: Sendable {
  /// All pages of the state, one after the other, from the first one on.
  case allPages
  /// The first page of the state.
  case firstPage
  /// The pages of the state with the identifiers that a closure returns. It is called on any
  /// thread, with no lock held.
  case pages(@Sendable (PaginatedPages<PageID, PageValue>) -> [PageID])
}

/// The value that one run of a paginated request returns.
public struct PaginatedResult<PageID: Hashable & Sendable, PageValue: Sendable>: Sendable {
  /// The kind of the run.
  public let kind: PaginatedRunKind
  /// The pages that the run fetched; empty if there was no further page.
  public let pages: PaginatedPages<PageID, PageValue>
  /// The place of the pages in the state.
  let place: PagePlace<PageID>
  /// The page that the limit of the run makes the first or the last one, with its neighbours, if a write has
  /// left it without; and the stamp of the value that it is from.
  var newEnd: (page: PaginatedPage<PageID, PageValue>, stamp: ValueStamp)?
}

extension PaginatedResult: CustomStringConvertible, CustomDebugStringConvertible {
  /// The kind of the run, and the fetched pages.
  public var description: String {
    describe(as: "PaginatedResult", kind.rawValue, "pages: \(pages)")
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

/// The place of fetched pages among the pages of a state.
enum PagePlace<PageID: Hashable & Sendable>: Sendable, Equatable {
  /// They replace all pages.
  case whole
  /// They replace all pages, or, if one of them is in the state, the pages with their identifiers.
  case initial
  /// They replace the pages with their identifiers. The others are dropped.
  case present
  /// They replace the pages with their identifiers. Others follow the page with this identifier, or are dropped
  /// if that has been removed.
  case after(PageID)
  /// The same, but others precede the page with this identifier.
  case before(PageID)
}

/// The value of a run that may be only a part of the state's value.
protocol PartialResult {
  /// A Boolean value that indicates whether this is only a part.
  var isPart: Bool { get }
  /// A Boolean value that indicates whether nothing was fetched, because there is no further part.
  var isEmpty: Bool { get }
  /// Returns a Boolean value that indicates whether a part of the value remains beside this.
  func isPart(of value: any Sendable) -> Bool
  /// Returns a Boolean value that indicates whether the part has a place in a value.
  func fits(in value: any Sendable) -> Bool
}

extension PaginatedResult: PartialResult {
  var isPart: Bool { place != .whole && place != .initial }

  var isEmpty: Bool { pages.isEmpty }

  func isPart(of value: any Sendable) -> Bool {
    guard place == .initial, let all = value as? PaginatedPages<PageID, PageValue> else {
      return isPart
    }
    return all.count > pages.count && pages.contains { all.index(id: $0.id) != nil }
  }

  func fits(in value: any Sendable) -> Bool {
    guard let pages = value as? PaginatedPages<PageID, PageValue> else { return true }
    return switch place {
    case .after(let neighbour), .before(let neighbour):
      pages.index(id: neighbour) != nil || self.pages.contains { pages.index(id: $0.id) != nil }
    case .whole, .initial, .present: true
    }
  }
}
