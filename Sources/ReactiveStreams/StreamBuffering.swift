/// The policy of a stream for elements that arrive faster than the reader takes them.
///
/// A limit below one is reported as an ``OperationIssue``, and counts as one.
public enum StreamBuffering: Sendable, Hashable {
  /// Keeps every element until it is read. Memory grows with the number of unread elements.
  case all
  /// Keeps the first `n` unread elements, and drops new ones while there are `n`.
  case oldest(Int)
  /// Keeps the last `n` unread elements, and drops the oldest one for a new one.
  case newest(Int)

  /// The policy with a limit of at least one; a smaller one is reported.
  var checked: StreamBuffering {
    switch self {
    case .all: return self
    case .oldest(let limit): return limit > 0 ? self : .oldest(Self.corrected(limit))
    case .newest(let limit): return limit > 0 ? self : .newest(Self.corrected(limit))
    }
  }

  private static func corrected(_ limit: Int) -> Int {
    OperationIssue.report(
      .invalidValue, "A stream cannot buffer \(limit) elements; it buffers one.")
    return 1
  }
}
