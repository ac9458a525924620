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

  private enum State: Sendable {
    case idle
    case waiting(Wait)
    case finished
  }

  /// What is left to do without the lock: the timers to start and to end, and an element to be released.
  typealias Change = (started: Timer?, ended: Timer?, dropped: StreamSignal<Element>?)

  var deliveries = DeliveryQueue<StreamSignal<Element>>()
  private let rule: StreamTimingRule
  private var state = State.idle

  init(rule: StreamTimingRule) { self.rule = rule }

  private var wait: Wait? { if case .waiting(let wait) = state { wait } else { nil } }

  mutating func receive(_ signal: StreamSignal<Element>) -> Change {
    switch (signal, rule, state) {
    case (_, _, .finished): return (nil, nil, nil)
    case (.finished, _, _):
      if let pending = wait?.pending { deliveries.append(pending) }
      deliveries.append(signal)
      return cancel()
    case (.element, .debounce, _): return change(to: .waiting(Wait(pending: signal)))
    case (.element, .throttle, .idle):
      deliveries.append(signal)
      return change(to: .waiting(Wait()))
    case (.element, .throttle, .waiting(var wait)):
      let dropped = wait.pending
      wait.pending = signal
      state = .waiting(wait)
      return (nil, nil, dropped)
    }
  }

  /// A timer has fired.
  mutating func fire(_ timer: Timer) -> Change {
    guard let wait, timer === wait.timer else { return (nil, nil, nil) }
    guard let pending = wait.pending else { return change(to: .idle) }
    deliveries.append(pending)
    return change(to: rule == .throttle ? .waiting(Wait()) : .idle)
  }

  mutating func cancel() -> Change { change(to: .finished) }

  private mutating func change(to new: State) -> Change {
    let old = wait
    state = new
    return (wait?.timer, old?.timer, old?.pending)
  }
}
