import FoundationEssentials

/// What the states of queries, pages and mutations have in common: the value, the last error, and how
/// often and when both were set.
struct StateFacts<Value: Sendable, Failure: Error>: Sendable {
  /// The value that the state began with; `nil` if that was an empty one.
  var initial: Value?
  var value: Value
  var valueDate: Date?
  var valueCount = 0
  private(set) var error: Failure?
  private(set) var errorDate: Date?
  private(set) var errorCount = 0
  /// Whether a saved value is being loaded.
  var isRestoring = false

  /// Creates the facts of a state that begins with a value.
  ///
  /// - Parameter isEmpty: Whether the value is the one that a reset state has anyway.
  init(_ value: Value, isEmpty: Bool) {
    initial = isEmpty ? nil : value
    self.value = value
  }

  /// Takes in a saved value, which is older than anything else.
  mutating func restore(_ value: Value, from date: Date) {
    self.value = value
    valueCount += 1
    valueDate = date
  }

  /// Takes in that `value` has been changed.
  mutating func succeed(at date: Date) {
    valueCount += 1
    valueDate = date
    error = nil
  }

  /// Takes in an error.
  mutating func fail(with failure: Failure, at date: Date) {
    error = failure
    errorCount += 1
    errorDate = date
  }

  /// Takes in a result. A value that is `nil` has no date.
  mutating func take<Wrapped>(
    _ result: Result<Wrapped?, Failure>, at date: Date
  ) where Value == Wrapped? {
    switch result {
    case .success(let value):
      self.value = value
      succeed(at: date)
      if value == nil { valueDate = nil }
    case .failure(let failure): fail(with: failure, at: date)
    }
  }

  /// Displays another value, which counts as a number of updates.
  mutating func show(_ value: Value, updates: Int) {
    self.value = value
    valueCount &+= updates
  }
}
