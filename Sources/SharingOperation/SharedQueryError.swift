public import Operation

/// What a wrapper throws of its own.
public enum SharedQueryError: Error, Sendable, Hashable, CustomStringConvertible {
  /// There is nothing behind the wrapper yet.
  case unbacked

  /// A line that says what to do.
  public var description: String {
    switch self {
    case .unbacked:
      "There is no store behind this wrapper yet; assign another wrapper, or call bind(to:)."
    }
  }
}

extension OperationIssue.Kind {
  /// Something was written to a wrapper with nothing behind it.
  public static let unbackedWrite = Self(rawValue: "unbacked write")
}
