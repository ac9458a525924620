import Synchronization

/// An identifier of a task or run, unique within the process. Later ones are greater.
public struct OperationTaskID: Sendable, Hashable, Comparable, CustomStringConvertible,
  CustomDebugStringConvertible
{
  private static let last = Atomic<UInt64>(0)

  let rawValue: UInt64

  /// Returns an identifier that no other task has.
  static func next() -> OperationTaskID {
    OperationTaskID(rawValue: last.wrappingAdd(1, ordering: .relaxed).newValue)
  }

  /// Returns a Boolean value that indicates whether `lhs` was made before `rhs`.
  public static func < (lhs: OperationTaskID, rhs: OperationTaskID) -> Bool {
    lhs.rawValue < rhs.rawValue
  }

  /// A hash sign and a number, which depends on how many tasks the process has made before.
  public var description: String { "#\(rawValue)" }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

/// A launch of a run: a restart begins a further one.
struct LaunchID: Sendable, Hashable {
  let run: OperationTaskID
  var launch = 0
}
