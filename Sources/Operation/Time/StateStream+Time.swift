public import ReactiveStreams

// `checked` reports a negative duration, which is taken as zero. Zero passes everything.
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
  ) -> StateStream {
    let duration = duration.checked(for: "The duration of debounce")
    return StateStream(source.debounce(for: duration) { clock.schedule(after: $0, $1) })
  }

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
  ) -> StateStream {
    let duration = duration.checked(for: "The duration of throttle")
    return StateStream(source.throttle(for: duration) { clock.schedule(after: $0, $1) })
  }
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
  ) -> EventStream {
    let duration = duration.checked(for: "The duration of debounce")
    let source = source.debounce(for: duration) { clock.schedule(after: $0, $1) }
    return EventStream(source, buffering: buffering)
  }

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
  ) -> EventStream {
    let duration = duration.checked(for: "The duration of throttle")
    let source = source.throttle(for: duration) { clock.schedule(after: $0, $1) }
    return EventStream(source, buffering: buffering)
  }
}
