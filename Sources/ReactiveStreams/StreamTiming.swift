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
      // After the deliveries: in those, a task whose sleep was the timer is not cancelled.
      @Sendable func perform(_ effects: StreamTimingMachine<Element>.Effects) {
        effects.timer?.cancel()
        guard let id = effects.start else { return }
        let subscription = timer(duration) { perform(shell.commit { $0.fire(id) }) }
        shell.withLock { $0.setTimer(subscription, id: id) }?.cancel()
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
/// A timer has an identifier, so that one which fires late has no effect.
struct StreamTimingMachine<Element: Sendable>: DeliveryMachine {
  private struct Wait: Sendable {
    let id: UInt64
    /// `nil` until its shell has started it.
    var timer: OperationSubscription?
    var pending: StreamSignal<Element>?
  }

  private enum State: Sendable {
    case idle
    case waiting(Wait)
    case finished
  }

  /// What is left to do without the lock.
  struct Effects: Sendable {
    /// The identifier of the timer to start.
    var start: UInt64?
    /// The timer that ends.
    var timer: OperationSubscription?
    /// The element that was replaced or dropped, to be released.
    var dropped: StreamSignal<Element>?
  }

  var deliveries = DeliveryQueue<StreamSignal<Element>>()
  private let rule: StreamTimingRule
  private var state = State.idle
  private var nextID: UInt64 = 0

  init(rule: StreamTimingRule) { self.rule = rule }

  mutating func receive(_ signal: StreamSignal<Element>) -> Effects {
    if case .finished = signal { return finish() }
    switch (state, rule) {
    case (.finished, _): return Effects()
    case (.idle, .throttle):
      deliveries.append(signal)
      return Effects(start: beginWait())
    case (.idle, .debounce): return Effects(start: beginWait(signal))
    case (.waiting(var wait), .throttle):
      let dropped = wait.pending
      wait.pending = signal
      state = .waiting(wait)
      return Effects(dropped: dropped)
    case (.waiting(let wait), .debounce):
      return Effects(start: beginWait(signal), timer: wait.timer, dropped: wait.pending)
    }
  }

  /// Stores a timer that was started. Returns it if it is not needed any more.
  mutating func setTimer(_ timer: OperationSubscription, id: UInt64) -> OperationSubscription? {
    guard case .waiting(var wait) = state, wait.id == id else { return timer }
    wait.timer = timer
    state = .waiting(wait)
    return nil
  }

  /// A timer has fired.
  mutating func fire(_ id: UInt64) -> Effects {
    guard case .waiting(let wait) = state, wait.id == id else { return Effects() }
    state = .idle
    guard let pending = wait.pending else { return Effects(timer: wait.timer) }
    deliveries.append(pending)
    return Effects(start: rule == .throttle ? beginWait() : nil, timer: wait.timer)
  }

  /// The source has ended: delivers the pending element, and the end.
  private mutating func finish() -> Effects {
    if case .finished = state { return Effects() }
    let wait = endWait()
    if let pending = wait?.pending { deliveries.append(pending) }
    deliveries.append(.finished)
    return Effects(timer: wait?.timer)
  }

  mutating func cancel() -> Effects {
    let wait = endWait()
    return Effects(timer: wait?.timer, dropped: wait?.pending)
  }

  private mutating func beginWait(_ pending: StreamSignal<Element>? = nil) -> UInt64 {
    defer { nextID += 1 }
    state = .waiting(Wait(id: nextID, pending: pending))
    return nextID
  }

  private mutating func endWait() -> Wait? {
    defer { state = .finished }
    if case .waiting(let wait) = state { return wait }
    return nil
  }
}
