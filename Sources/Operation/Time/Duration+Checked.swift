import FoundationEssentials
import ReactiveStreams

extension Duration {
  /// The longest wait of the library: a hundred years of 365 days.
  static let longest = Duration.seconds(secondsOfLongest)
  fileprivate static var secondsOfLongest: Double { 100 * 365 * 86_400 }

  /// The duration, limited to ``longest`` in both directions.
  var limited: Duration { min(max(self, .zero - .longest), .longest) }

  /// The duration as a number of nanoseconds. It must be between minus and plus 200 years.
  var inNanoseconds: Int64 { Int64(attoseconds / 1_000_000_000) }

  /// The duration as a number of seconds.
  var inSeconds: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) / 1e18
  }

  /// Returns the product, limited to ``longest``, and zero for a negative one.
  ///
  /// A whole factor is applied exactly, so that a manual clock that is advanced by a multiple of a
  /// duration ends a sleep of that multiple.
  func scaled(by factor: Double) -> Duration {
    let seconds = inSeconds * factor
    guard seconds < Duration.secondsOfLongest else { return self == .zero ? .zero : .longest }
    if let whole = Int64(exactly: factor) { return max(self * whole, .zero) }
    return .seconds(max(seconds, 0))
  }
}

extension Date {
  func advanced(by duration: Duration) -> Date { addingTimeInterval(duration.inSeconds) }

  /// Returns the time from an earlier date to this one, in whole microseconds; negative if the clock
  /// was set back.
  ///
  /// A date of today has no more than that precision: its last bits would make a span of 100 ms a
  /// little shorter. The span of dates that have none, such as two infinite ones, is
  /// `Duration.longest`.
  func duration(since earlier: Date) -> Duration {
    let longest = Duration.secondsOfLongest
    let exact = timeIntervalSince(earlier)
    let interval = exact.isNaN ? longest : min(max(-longest, exact), longest)
    return .microseconds(Int64((interval * 1_000_000).rounded()))
  }
}

// Arguments of public calls: an invalid one is reported, and replaced.
extension Duration {
  /// Returns the duration, limited to ``longest``, or zero for a negative one.
  func checked(for purpose: @autoclosure () -> String) -> Duration {
    if self >= .zero { return min(self, .longest) }
    return replace(self, by: .zero, "zero", purpose())
  }

  /// Returns the duration, limited to ``longest``, or one second for one that is not positive.
  func checkedInterval(for purpose: @autoclosure () -> String) -> Duration {
    if self > .zero { return min(self, .longest) }
    return replace(self, by: .seconds(1), "one second", purpose())
  }
}

extension Int {
  /// Returns the number, or one for a lower one.
  func checkedLimit(for purpose: @autoclosure () -> String) -> Int {
    self >= 1 ? self : replace(self, by: 1, "one", purpose())
  }

  /// Returns the number, or zero for a negative one.
  func checkedCount(for purpose: @autoclosure () -> String) -> Int {
    self >= 0 ? self : replace(self, by: 0, "zero", purpose())
  }
}

private func replace<Value>(
  _ value: Value, by replacement: Value, _ name: String, _ purpose: String
) -> Value {
  OperationIssue.report(.invalidValue, "\(purpose) cannot be \(value); it is taken as \(name).")
  return replacement
}
