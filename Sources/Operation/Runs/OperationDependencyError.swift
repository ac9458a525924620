/// What a run fails with whose requests read each other in a circle.
public enum OperationDependencyError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The requests on these paths read each other, each the next one, and the last one the first.
  case cycle([OperationPath])

  /// A line that names the paths.
  public var description: String {
    switch self {
    case .cycle(let paths):
      let circle = paths + paths.prefix(1)
      return "Requests read each other in a circle: "
        + circle.map(\.description).joined(separator: " → ")
    }
  }
}
