import FoundationEssentials
import ReactiveStreams

extension Duration {
  /// As far as any wait of the library goes: a hundred years of 365 days.
  static let longest = Duration.seconds(secondsOfLongest)
  fileprivate static var secondsOfLongest: Double { 100 * 365 * 86_400 }

  /// The duration as a number of seconds.
  var inSeconds: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) * 1e-18
  }

  /// The duration, or zero for a negative one, which is reported.
  func checked(for purpose: @autoclosure () -> String) -> Duration {
    if self >= .zero { return min(self, .longest) }
    OperationIssue(
      kind: .invalidValue, message: "\(purpose()) cannot be \(self); it is taken as zero."
    ).report()
    return .zero
  }

  /// The product, no longer than ``longest``; exact for a whole factor, so that a clock which is
  /// advanced by a multiple of a duration wakes whoever waits for that multiple.
  func scaled(by factor: Double) -> Duration {
    let seconds = inSeconds * factor
    guard seconds < Duration.secondsOfLongest else { return self == .zero ? .zero : .longest }
    if let whole = Int64(exactly: factor) { return max(self * whole, .zero) }
    return .seconds(max(seconds, 0))
  }
}

extension Duration {
  /// A time to wait between two things, which is above zero.
  func checkedInterval(for purpose: @autoclosure () -> String) -> Duration {
    if self > .zero { return min(self, .longest) }
    OperationIssue(
      kind: .invalidValue, message: "\(purpose()) cannot be \(self); it is taken as one second."
    ).report()
    return .seconds(1)
  }
}

extension Date {
  func advanced(by duration: Duration) -> Date {
    addingTimeInterval(duration.inSeconds)
  }

  /// The time from `earlier` to this date, negative if the clock was set back, in whole
  /// microseconds: a date of today is no finer than that, and its last bits would make a span of
  /// 100 ms a little less. Of two dates that have none, as endless ones, it is the longest.
  func duration(since earlier: Date) -> Duration {
    let longest = Duration.secondsOfLongest
    let exact = timeIntervalSince(earlier)
    let interval = exact.isNaN ? longest : min(max(-longest, exact), longest)
    return .microseconds(Int64((interval * 1_000_000).rounded()))
  }
}

extension Int {
  /// The number, or one for a smaller one, which is reported.
  func checkedLimit(for purpose: @autoclosure () -> String) -> Int {
    if self >= 1 { return self }
    OperationIssue(
      kind: .invalidValue, message: "\(purpose()) cannot be \(self); it is taken as one."
    ).report()
    return 1
  }

  /// The number, or zero for a negative one, which is reported.
  func checkedCount(for purpose: @autoclosure () -> String) -> Int {
    if self >= 0 { return self }
    OperationIssue(
      kind: .invalidValue, message: "\(purpose()) cannot be \(self); it is taken as zero."
    ).report()
    return 0
  }
}
