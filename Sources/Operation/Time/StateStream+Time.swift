public import ReactiveStreams

extension StreamSource {
  fileprivate func timed(
    _ rule: StreamTimingRule, for duration: Duration, _ clock: any OperationClock
  ) -> StreamSource {
    // A negative duration is reported, and taken as zero, which passes everything.
    timed(rule, for: duration.checked(for: "The duration of \(rule)")) {
      clock.schedule(after: $0, $1)
    }
  }
}

extension StateStream {
  /// Sends an element when no other one came for a duration; of several, only the newest.
  ///
  /// When this stream ends, the pending element is sent at once. The wait ends with the iterator.
  ///
  /// - Parameters:
  ///   - duration: The time without another element, a hundred years at most. Zero passes every
  ///     element at once. A negative duration is reported as an `OperationIssue`, and zero is used.
  ///   - clock: The clock of the wait; that of the machine by default.
  public func debounce(
    for duration: Duration, clock: any OperationClock = SystemClock()
  ) -> StateStream { StateStream(source.timed(.debounce, for: duration, clock)) }

  /// Sends the first element at once, and then at most one in each duration: the newest.
  ///
  /// When this stream ends, the pending element is sent at once. The wait ends with the iterator.
  ///
  /// - Parameters:
  ///   - duration: The least time between two elements, a hundred years at most. Zero passes every
  ///     element at once. A negative duration is reported as an `OperationIssue`, and zero is used.
  ///   - clock: The clock of the wait; that of the machine by default.
  public func throttle(
    for duration: Duration, clock: any OperationClock = SystemClock()
  ) -> StateStream { StateStream(source.timed(.throttle, for: duration, clock)) }
}

extension EventStream {
  /// Sends an element when no other one came for a duration; of several, only the newest.
  ///
  /// When this stream ends, the pending element is sent at once. The wait ends with the iterator.
  /// Unread elements are kept according to `buffering`.
  ///
  /// - Parameters:
  ///   - duration: The time without another element, a hundred years at most. Zero passes every
  ///     element at once. A negative duration is reported as an `OperationIssue`, and zero is used.
  ///   - clock: The clock of the wait; that of the machine by default.
  public func debounce(
    for duration: Duration, clock: any OperationClock = SystemClock()
  ) -> EventStream { stream(of: source.timed(.debounce, for: duration, clock)) }

  /// Sends the first element at once, and then at most one in each duration: the newest.
  ///
  /// When this stream ends, the pending element is sent at once. The wait ends with the iterator.
  /// Unread elements are kept according to `buffering`.
  ///
  /// - Parameters:
  ///   - duration: The least time between two elements, a hundred years at most. Zero passes every
  ///     element at once. A negative duration is reported as an `OperationIssue`, and zero is used.
  ///   - clock: The clock of the wait; that of the machine by default.
  public func throttle(
    for duration: Duration, clock: any OperationClock = SystemClock()
  ) -> EventStream { stream(of: source.timed(.throttle, for: duration, clock)) }
}
