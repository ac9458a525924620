// A file that imports this module can use the streams without a second import.
@_exported public import ReactiveStreams

extension OperationIssue.Kind {
  /// Two types of request have the same path in one client.
  public static let pathClash = Self(rawValue: "path clash")
  /// The path of a request, or the identifier of a page, is not equal to itself.
  public static let unequalIdentity = Self(rawValue: "unequal identity")
  /// A request has an empty path.
  public static let emptyPath = Self(rawValue: "empty path")
  /// Two tasks were scheduled to wait for each other.
  public static let scheduleCycle = Self(rawValue: "schedule cycle")
  /// A continuation was used after its run had ended.
  public static let lateYield = Self(rawValue: "late yield")
  /// A modifier was applied for a state of another type than the store has.
  public static let stateMismatch = Self(rawValue: "state mismatch")
  /// A request asks for a rule that cannot differ from that of the request its store was created for.
  public static let ruleConflict = Self(rawValue: "rule conflict")
  /// Requests read each other in a cycle, and the failure type of one of them cannot express that.
  public static let dependencyCycle = Self(rawValue: "dependency cycle")
  /// The client of the process was used where a test has to have one of its own.
  public static let missingClient = Self(rawValue: "missing client")
  /// The system does not report whether there is a connection.
  public static let unobservableNetwork = Self(rawValue: "unobservable network")
  /// A source of system events cannot be observed.
  public static let unavailableSource = Self(rawValue: "unavailable source")
  /// The storage of a client could not read or write.
  public static let storageFailure = Self(rawValue: "storage failure")
  /// A value, or a call of a mutation, cannot be saved.
  public static let unsavedValue = Self(rawValue: "unsaved value")
  /// What is saved cannot be decoded.
  public static let unreadableEntry = Self(rawValue: "unreadable entry")
  /// A saved call has no registered mutation, or is too old.
  public static let unresumedCall = Self(rawValue: "unresumed call")
}
