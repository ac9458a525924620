/// Calls an action once after a duration, on any thread and with no lock held, unless the
/// subscription ends before. The `schedule` of a clock of the module above is one.
package typealias StreamTimer =
  @Sendable (Duration, @escaping @Sendable () -> Void) -> OperationSubscription

extension StreamSource {
  /// Sends the elements when the rule says so. A duration of zero changes nothing.
  package func timed(
    _ rule: StreamTimingRule, for duration: Duration, timer: @escaping StreamTimer
  ) -> StreamSource {
    guard duration > .zero else { return self }
    return StreamSource { handler in
      let shell = DeliveryShell(StreamTimingMachine<Element>(rule: rule))
      @Sendable func perform(_ change: StreamTimingMachine<Element>.Change) {
        // After the deliveries: in those, a task whose sleep was the timer is not cancelled.
        change.ended?.cancel()
        withExtendedLifetime(change.dropped) {}
        guard let started = change.started else { return }
        started.set(timer(duration) { perform(shell.commit { $0.fire(started) }) })
      }
      return .combined(
        shell.subscribe(handler),
        subscribe { signal in perform(shell.commit { $0.receive(signal) }) },
        OperationSubscription { perform(shell.withLock { $0.cancel() }) })
    }
  }
}

package enum StreamTimingRule: Sendable {
  /// Sends an element when no other one came for the duration: every element becomes pending, and starts
  /// the timer anew.
  case debounce
  /// Sends the first element at once, and then the newest one of each duration: an element becomes pending
  /// only while the timer runs; otherwise it is delivered and starts it.
  case throttle
}

/// The machine of `debounce` and `throttle`: the timer, and the element that waits for it.
///
/// - *idle*: no timer runs, and no element is pending.
/// - *waiting*: a timer runs. With `debounce` an element is pending, with `throttle` one may be.
/// - *finished*: the source has ended, or the subscription was cancelled.
///
/// Each wait has a timer of its own, so that one which fires late has no effect.
struct StreamTimingMachine<Element: Sendable>: DeliveryMachine {
  typealias Timer = LateSubscription

  private struct Wait: Sendable {
    let timer = Timer()
    var pending: StreamSignal<Element>?
  }

  /// What is left to do without the lock: the timers to start and to end, and an element to be released.
  typealias Change = (started: Timer?, ended: Timer?, dropped: StreamSignal<Element>?)

  var deliveries = DeliveryQueue<StreamSignal<Element>>()
  private let rule: StreamTimingRule
  /// `nil` while idle, and when finished.
  private var wait: Wait?
  private var isFinished = false

  init(rule: StreamTimingRule) { self.rule = rule }

  mutating func receive(_ signal: StreamSignal<Element>) -> Change {
    if isFinished { return (nil, nil, nil) }
    switch (signal, rule) {
    case (.finished, _):
      if let pending = wait?.pending { deliveries.append(pending) }
      deliveries.append(signal)
      return cancel()
    case (.element, .debounce): return replaceWait(by: Wait(pending: signal))
    case (.element, .throttle) where wait == nil:
      deliveries.append(signal)
      return replaceWait(by: Wait())
    case (.element, .throttle):
      defer { wait?.pending = signal }
      return (nil, nil, wait?.pending)
    }
  }

  /// A timer has fired.
  mutating func fire(_ timer: Timer) -> Change {
    guard timer === wait?.timer else { return (nil, nil, nil) }
    guard let pending = wait?.pending else { return replaceWait(by: nil) }
    deliveries.append(pending)
    return replaceWait(by: rule == .throttle ? Wait() : nil)
  }

  mutating func cancel() -> Change {
    isFinished = true
    return replaceWait(by: nil)
  }

  private mutating func replaceWait(by new: Wait?) -> Change {
    let old = exchange(&wait, with: new)
    return (new?.timer, old?.timer, old?.pending)
  }
}
