public import FoundationEssentials

/// A state whose value can be saved when the program ends, and restored when it starts again.
///
/// ``QueryState`` and ``PaginatedState`` are. A state of your own conforms to it to make
/// ``StatefulOperationRequest/persisted(as:maxAge:version:)`` available for its requests.
public protocol PersistableState<SavedValue>: OperationState {
  /// The type of what is saved, such as the value of a query.
  associatedtype SavedValue: Sendable

  /// What to save; `nil` if nothing was fetched or set, so that nothing is saved.
  ///
  /// A store reads it from a copy of the confirmed state, without optimistic edits, with no lock held.
  var savedValue: SavedValue? { get }
  /// A Boolean value that indicates whether a saved value is being loaded.
  var isRestoring: Bool { get }

  /// Records whether a saved value is being loaded.
  mutating func setRestoring(_ isRestoring: Bool)
  /// Displays a saved value with the date at which it was fetched, and counts it as an update.
  ///
  /// A store calls this only while nothing was fetched or set. A failure remains.
  mutating func restore(_ value: SavedValue, from date: Date)
  /// Completes a saved value before it is restored. The store calls it with no lock held.
  static func prepare(saved value: inout SavedValue, in context: OperationContext)
}

extension PersistableState {
  /// Leaves the value unchanged.
  public static func prepare(saved value: inout SavedValue, in context: OperationContext) {}
}

extension QueryState: PersistableState {
  /// The value, if one was fetched or set, or the initial one was edited.
  public var savedValue: Value? { facts.isSaved ? facts.value : nil }
  /// A Boolean value that indicates whether a saved value is being loaded.
  public var isRestoring: Bool { facts.isRestoring }

  /// Records whether a saved value is being loaded.
  public mutating func setRestoring(_ isRestoring: Bool) { facts.isRestoring = isRestoring }
  /// Displays a saved value with its date.
  public mutating func restore(_ value: Value, from date: Date) { facts.restore(value, from: date) }
}

extension PaginatedState: PersistableState {
  /// The pages, if some were fetched or set, or the initial ones were edited.
  public var savedValue: PaginatedPages<PageID, PageValue>? { facts.isSaved ? facts.value : nil }
  /// A Boolean value that indicates whether saved pages are being loaded.
  public var isRestoring: Bool { facts.isRestoring }

  /// Records whether saved pages are being loaded.
  public mutating func setRestoring(_ isRestoring: Bool) { facts.isRestoring = isRestoring }
  /// Displays saved pages with their date.
  public mutating func restore(_ pages: PaginatedPages<PageID, PageValue>, from date: Date) {
    facts.restore(pages, from: date)
  }
  /// Finds the pages before and after the saved ones.
  public static func prepare(
    saved pages: inout PaginatedPages<PageID, PageValue>, in context: OperationContext
  ) { prepare(&pages, in: context) }
}
