extension OperationState {
  /// Returns the name of a state, its status, parts of it, and its error.
  fileprivate func describe(as name: String, value: String?, _ parts: String?...) -> String {
    let error = error.map { "error: \(Operation.describe($0))" }
    let facts = [status.name, value.map { "value: \($0)" }]
    return Operation.describe(as: name, facts + parts + [error])
  }
}

extension QueryState: CustomStringConvertible, CustomDebugStringConvertible {
  /// The status, the value and the error, such as `QueryState(loading, value: 1)`.
  public var description: String {
    describe(as: "QueryState", value: currentValue.map { Operation.describe($0) })
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

extension PaginatedState: CustomStringConvertible, CustomDebugStringConvertible {
  /// The status, the identifiers of the pages and of those around them, and the error.
  public var description: String {
    describe(
      as: "PaginatedState", value: nil, "pages: \(Operation.describe(currentValue.ids))",
      previousPageId.map { "previous: \(Operation.describe($0))" },
      nextPageId.map { "next: \(Operation.describe($0))" })
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

extension MutationState: CustomStringConvertible, CustomDebugStringConvertible {
  /// The status, the value, the number of attempts in the history, and the error.
  public var description: String {
    describe(
      as: "MutationState", value: currentValue.map { Operation.describe($0) },
      "history: \(history.count)")
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

extension MutationState.Attempt: CustomStringConvertible, CustomDebugStringConvertible {
  /// The status and the arguments, such as `Attempt(success(1), arguments: 2)`.
  public var description: String {
    Operation.describe(
      as: "Attempt", [status.description, "arguments: \(Operation.describe(arguments))"])
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

extension DefaultState: CustomStringConvertible, CustomDebugStringConvertible {
  /// The projected state, and the default.
  public var description: String {
    Operation.describe(
      as: "DefaultState",
      [Operation.describe(base), "default: \(Operation.describe(defaultValue))"])
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

extension SelectedState: CustomStringConvertible, CustomDebugStringConvertible {
  /// The projected state, and the selected part.
  public var description: String {
    Operation.describe(
      as: "SelectedState",
      [Operation.describe(base), "selected: \(Operation.describe(currentValue))"])
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

extension OperationRetry: CustomStringConvertible, CustomDebugStringConvertible {
  /// The number of failed attempts, and the last failure.
  public var description: String {
    describe(
      as: "OperationRetry",
      ["failed attempts: \(failedAttempts)", "last failure: \(describe(lastFailure))"])
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}
