/// The failure of a run whose requests read each other in a cycle.
public enum OperationDependencyError: Error, Sendable, Hashable, CustomStringConvertible {
  /// Each of the requests on these paths reads the next one, and the last one reads the first.
  case cycle([OperationPath])

  /// A line that names the paths.
  public var description: String {
    switch self {
    case .cycle(let paths):
      let cycle = paths + paths.prefix(1)
      return "Requests read each other in a circle: "
        + cycle.map(\.description).joined(separator: " → ")
    }
  }
}
