public import FoundationEssentials

/// What the states of queries, pages and mutations note of the results that they take in.
///
/// States show it under the names of `OperationState`. It is apart from them, so that the stores of
/// other modules change it in code of their own, though it is public only to be read.
@usableFromInline struct StateFacts<Value: Sendable, Failure: Error>: Sendable {
  @usableFromInline var value: Value
  @usableFromInline var valueCount = 0
  @usableFromInline var valueDate: Date?
  /// Most states have none, and are copied with each change that is told.
  @usableFromInline var errors = Boxed<Errors>.none

  /// What has gone wrong.
  @usableFromInline struct Errors: Sendable {
    @usableFromInline var last: Failure?
    @usableFromInline var count = 0
    @usableFromInline var date: Date?

    @inlinable init() {}
  }

  @inlinable init(_ value: Value) {
    self.value = value
  }

  @inlinable var error: Failure? { errors.isNone ? nil : errors.content.last }
  @inlinable var errorCount: Int { errors.isNone ? 0 : errors.content.count }
  @inlinable var errorDate: Date? { errors.isNone ? nil : errors.content.date }

  /// A value came.
  @inlinable mutating func succeed(with value: Value, at date: Date) {
    self.value = value
    succeed(at: date)
  }

  /// A value came, which is there already.
  @inlinable mutating func succeed(at date: Date) {
    valueCount += 1
    valueDate = date
    if error != nil { errors.content.last = nil }
  }

  @inlinable mutating func fail(with failure: Failure, at date: Date) {
    if errors.isNone { errors = .some(Errors()) }
    errors.content.last = failure
    errors.content.count += 1
    errors.content.date = date
  }

  /// A result came, or somebody took the value away, which leaves none that could have a date.
  @inlinable mutating func take<Present>(
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

  @inlinable mutating func show(_ value: Value, updates: Int) {
    self.value = value
    valueCount &+= updates
  }
}
