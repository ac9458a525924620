extension OperationState {
  /// The error, as a part of a description.
  fileprivate var errorPart: String? { error.map { "error: \(describe($0))" } }
}

extension QueryState: CustomStringConvertible, CustomDebugStringConvertible {
  /// The status, the value and the error, such as `QueryState(loading, value: 1)`.
  public var description: String {
    let value = currentValue.map { "value: \(describe($0))" }
    return describe(as: "QueryState", status.name, value, errorPart)
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

extension PaginatedState: CustomStringConvertible, CustomDebugStringConvertible {
  /// The status, the identifiers of the pages and of those around them, and the error.
  public var description: String {
    describe(
      as: "PaginatedState", status.name, "pages: \(describe(currentValue.ids))",
      previousPageId.map { "previous: \(describe($0))" },
      nextPageId.map { "next: \(describe($0))" }, errorPart)
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

extension MutationState: CustomStringConvertible, CustomDebugStringConvertible {
  /// The status, the value, the number of attempts in the history, and the error.
  public var description: String {
    let value = currentValue.map { "value: \(describe($0))" }
    return describe(
      as: "MutationState", status.name, value, "history: \(history.count)", errorPart)
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

extension MutationState.Attempt: CustomStringConvertible, CustomDebugStringConvertible {
  /// The status and the arguments, such as `Attempt(success(1), arguments: 2)`.
  public var description: String {
    describe(as: "Attempt", status.description, "arguments: \(describe(arguments))")
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

extension DefaultState: CustomStringConvertible, CustomDebugStringConvertible {
  /// The projected state, and the default.
  public var description: String {
    describe(as: "DefaultState", describe(base), "default: \(describe(defaultValue))")
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

extension SelectedState: CustomStringConvertible, CustomDebugStringConvertible {
  /// The projected state, and the selected part.
  public var description: String {
    describe(as: "SelectedState", describe(base), "selected: \(describe(currentValue))")
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}

extension OperationRetry: CustomStringConvertible, CustomDebugStringConvertible {
  /// The number of failed attempts, and the last failure.
  public var description: String {
    describe(
      as: "OperationRetry", "failed attempts: \(failedAttempts)",
      "last failure: \(describe(lastFailure))")
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}
