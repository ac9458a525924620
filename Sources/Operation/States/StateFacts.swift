import FoundationEssentials

/// What the states of queries, pages and mutations note of the results that they take in.
///
/// States show it under the names of `OperationState`. It is apart from them, so that the stores of
/// other modules change it in code of their own, though it is public only to be read.
struct StateFacts<Value: Sendable, Failure: Error>: Sendable {
  // In an order in which each field of a word is beside one of another size: a copy reads two words
  // that were written one by one together, and waits for both.
  var value: Value
  var valueDate: Date?
  var valueCount = 0
  /// Most states have none, and are copied with each change that is told.
  var rest = Boxed<Rest>.none

  /// The value that the state began with, if it had one, and what has gone wrong.
  struct Rest: Sendable {
    var initial: Value?
    var error: Failure?
    var errorCount = 0
    var errorDate: Date?

    init(initial: Value?) {
      self.initial = initial
    }
  }

  /// What a state notes at its beginning, for which an empty value need not be kept.
  init(_ value: Value, isEmpty: Bool) {
    if !isEmpty { rest = .some(Rest(initial: value)) }
    self.value = value
  }

  /// A copy made field by field.
  init(copying other: borrowing Self) {
    value = other.value
    valueDate = other.valueDate
    valueCount = other.valueCount
    rest = other.rest
  }

  var initial: Value? { rest.isNone ? nil : rest.content.initial }
  var error: Failure? { rest.isNone ? nil : rest.content.error }
  var errorCount: Int { rest.isNone ? 0 : rest.content.errorCount }
  var errorDate: Date? { rest.isNone ? nil : rest.content.errorDate }

  /// A value came.
  mutating func succeed(with value: Value, at date: Date) {
    self.value = value
    succeed(at: date)
  }

  /// A value came, which is there already.
  mutating func succeed(at date: Date) {
    valueCount += 1
    valueDate = date
    if error != nil { rest.content.error = nil }
  }

  mutating func fail(with failure: Failure, at date: Date) {
    if rest.isNone { rest = .some(Rest(initial: nil)) }
    rest.content.error = failure
    rest.content.errorCount += 1
    rest.content.errorDate = date
  }

  /// A result came, or somebody took the value away, which leaves none that could have a date.
  mutating func take<Present>(
    _ result: Result<Present?, Failure>, at date: Date
  ) where Value == Present? {
    switch result {
    case .success(let value):
      succeed(with: value, at: date)
      if value == nil { valueDate = nil }
    case .failure(let failure):
      fail(with: failure, at: date)
    }
  }

  mutating func show(_ value: Value, updates: Int) {
    self.value = value
    valueCount &+= updates
  }
}
