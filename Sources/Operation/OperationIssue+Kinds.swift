public import ReactiveStreams

extension OperationIssue.Kind {
  /// Two types of request have the same path in one client.
  public static let pathClash = Self(rawValue: "path clash")
  /// A request, or a page of one, is under something that is not equal to itself.
  public static let unequalIdentity = Self(rawValue: "unequal identity")
  /// A request has an empty path.
  public static let emptyPath = Self(rawValue: "empty path")
  /// Two tasks were to wait for each other.
  public static let scheduleCycle = Self(rawValue: "schedule cycle")
  /// A continuation was used after its run had ended.
  public static let lateYield = Self(rawValue: "late yield")
  /// A rule was given a state of another type than the one it was made for.
  public static let stateMismatch = Self(rawValue: "state mismatch")
  /// Requests read each other in a circle, and one of them has a failure that cannot say so.
  public static let dependencyCycle = Self(rawValue: "dependency cycle")
  /// The system does not say whether there is a connection.
  public static let unobservableNetwork = Self(rawValue: "unobservable network")
  /// Something of the system that was to be watched cannot be.
  public static let unavailableSource = Self(rawValue: "unavailable source")
}
