/// Says what a stream does with elements that come faster than its reader takes them.
///
/// A stream reports a number below one, and takes it as one.
public enum StreamBuffering: Sendable, Hashable {
  /// Keeps every element until it is read; memory grows with what is unread.
  case all
  /// Keeps the first `n` unread elements, and drops what comes while it is full.
  case oldest(Int)
  /// Keeps the last `n` unread elements, and drops the oldest of them for a new one.
  case newest(Int)

  /// The policy with a limit of at least one; a smaller one is reported.
  var checked: StreamBuffering {
    switch self {
    case .all: return self
    case .oldest(let limit): return limit > 0 ? self : .oldest(Self.corrected(limit))
    case .newest(let limit): return limit > 0 ? self : .newest(Self.corrected(limit))
    }
  }

  static func corrected(_ limit: Int) -> Int {
    OperationIssue(
      kind: .invalidValue,
      message: "A stream cannot buffer \(limit) elements; it buffers one."
    ).report()
    return 1
  }
}
