import FoundationEssentials

/// What the states of queries, pages and mutations have in common: the value, the last error, and how
/// often and when both were set.
struct StateFacts<Value: Sendable, Failure: Error>: Sendable {
  var value: Value
  var valueDate: Date?
  var valueCount = 0
  @Indirect private var extras: Extras? = nil

  /// What most states do not have. It is on the heap, because a state is copied for each notification:
  /// a struct of more than six fields is copied through its metadata, which puts these benchmarks over
  /// their limits: write per subscriber, subscribe and cancel.
  private struct Extras: Sendable {
    var initial: Value?
    var error: Failure?
    var errorDate: Date?
    var errorCount = 0
    var isRestoring = false
  }

  /// Creates the facts of a state that begins with a value.
  ///
  /// - Parameter isEmpty: Whether the value is the one that a reset state has anyway.
  init(_ value: Value, isEmpty: Bool) {
    self.value = value
    if !isEmpty { extras = Extras(initial: value) }
  }

  /// The value that the state began with; `nil` if that was an empty one.
  var initial: Value? {
    get { extras?.initial }
    set { change { $0.initial = newValue } }
  }
  var error: Failure? { extras?.error }
  var errorDate: Date? { extras?.errorDate }
  var errorCount: Int { extras?.errorCount ?? 0 }
  /// Whether a saved value is being loaded.
  var isRestoring: Bool {
    get { extras?.isRestoring ?? false }
    set { if newValue != isRestoring { change { $0.isRestoring = newValue } } }
  }

  private mutating func change(_ body: (inout Extras) -> Void) {
    var extras = extras ?? Extras()
    body(&extras)
    self.extras = extras
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
    if error != nil { change { $0.error = nil } }
  }

  /// Takes in an error.
  mutating func fail(with failure: Failure, at date: Date) {
    change {
      $0.error = failure
      $0.errorCount += 1
      $0.errorDate = date
    }
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
