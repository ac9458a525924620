import FoundationEssentials
import ReactiveStreams

extension Duration {
  /// As far as any wait of the library goes: a hundred years of 365 days.
  static let longest = Duration.seconds(100 * 365 * 86_400)

  /// The duration as a number of seconds.
  var inSeconds: Double {
    Double(components.seconds) + Double(components.attoseconds) * 1e-18
  }

  /// The duration, or zero for a negative one, which is reported.
  func checked(for purpose: @autoclosure () -> String) -> Duration {
    if self >= .zero { return min(self, .longest) }
    OperationIssue(
      kind: .invalidValue, message: "\(purpose()) cannot be \(self); it is taken as zero."
    ).report()
    return .zero
  }

  /// The product, no longer than ``longest``.
  func scaled(by factor: Double) -> Duration {
    let seconds = inSeconds * factor
    return seconds < Duration.longest.inSeconds ? .seconds(max(seconds, 0)) : .longest
  }
}

extension Date {
  func advanced(by duration: Duration) -> Date {
    addingTimeInterval(duration.inSeconds)
  }

  /// The time from `earlier` to this date; negative if the clock was set back.
  func duration(since earlier: Date) -> Duration {
    .seconds(timeIntervalSince(earlier))
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
