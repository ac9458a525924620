/// Calls an action once after a duration, on any thread and with no lock held, unless the
/// subscription ends before. The `schedule` of a clock of the module above is one.
package typealias StreamTimer =
  @Sendable (Duration, @escaping @Sendable () -> Void) -> OperationSubscription

extension StreamSource {
  /// Sends an element when no other one came for a duration. A duration of zero changes nothing.
  package func debounce(for duration: Duration, timer: @escaping StreamTimer) -> StreamSource {
    timed(.debounce, duration, timer)
  }

  /// Sends the first element at once, and then the newest one of each duration. A duration of zero
  /// changes nothing.
  package func throttle(for duration: Duration, timer: @escaping StreamTimer) -> StreamSource {
    timed(.throttle, duration, timer)
  }

  private func timed(
    _ rule: StreamTimingRule, _ duration: Duration, _ timer: @escaping StreamTimer
  ) -> StreamSource {
    guard duration > .zero else { return self }
    return StreamSource { handler in
      let timing = StreamTiming<Element>(rule: rule, duration: duration, timer: timer)
      return .combined(
        timing.shell.subscribe(handler),
        subscribe { timing.receive($0) },
        OperationSubscription { timing.cancel() })
    }
  }
}

enum StreamTimingRule: Sendable {
  /// Every element becomes pending, and starts the timer anew.
  case debounce
  /// An element becomes pending only while the timer runs; otherwise it is delivered and starts it.
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
  struct Pending: Sendable {
    let element: Element
    let epoch: StreamEpoch?
  }

  private struct Wait: Sendable {
    let id: UInt64
    /// `nil` until its shell has started it.
    var timer: OperationSubscription?
    var pending: Pending?
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
    var dropped: Pending?
  }

  var deliveries = DeliveryQueue<StreamSignal<Element>>()
  private let rule: StreamTimingRule
  private var state = State.idle
  private var nextID: UInt64 = 0

  init(rule: StreamTimingRule) { self.rule = rule }

  mutating func receive(_ element: Element, in epoch: StreamEpoch?) -> Effects {
    let pending = Pending(element: element, epoch: epoch)
    switch (state, rule) {
    case (.finished, _): return Effects()
    case (.idle, .throttle):
      deliver(pending)
      return Effects(start: beginWait())
    case (.idle, .debounce): return Effects(start: beginWait(pending))
    case (.waiting(var wait), .throttle):
      let dropped = wait.pending
      wait.pending = pending
      state = .waiting(wait)
      return Effects(dropped: dropped)
    case (.waiting(let wait), .debounce):
      return Effects(start: beginWait(pending), timer: wait.timer, dropped: wait.pending)
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
    deliver(pending)
    return Effects(start: rule == .throttle ? beginWait() : nil, timer: wait.timer)
  }

  /// The source has ended: delivers the pending element, and the end.
  mutating func finish() -> Effects {
    if case .finished = state { return Effects() }
    let wait = endWait()
    if let pending = wait?.pending { deliver(pending) }
    deliveries.append(.finished)
    return Effects(timer: wait?.timer)
  }

  mutating func cancel() -> Effects {
    let wait = endWait()
    return Effects(timer: wait?.timer, dropped: wait?.pending)
  }

  private mutating func deliver(_ pending: Pending) {
    deliveries.append(.element(pending.element, in: pending.epoch))
  }

  private mutating func beginWait(_ pending: Pending? = nil) -> UInt64 {
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

/// Starts and ends the timer without the lock of its shell.
private struct StreamTiming<Element: Sendable>: Sendable {
  let shell: DeliveryShell<StreamTimingMachine<Element>>
  let duration: Duration
  let timer: StreamTimer

  init(rule: StreamTimingRule, duration: Duration, timer: @escaping StreamTimer) {
    shell = DeliveryShell(StreamTimingMachine(rule: rule))
    self.duration = duration
    self.timer = timer
  }

  func receive(_ signal: StreamSignal<Element>) {
    switch signal {
    case .element(let element, let epoch): perform(shell.commit { $0.receive(element, in: epoch) })
    case .finished: perform(shell.commit { $0.finish() })
    }
  }

  func cancel() { perform(shell.withLock { $0.cancel() }) }

  /// Performs effects, after the deliveries: in those, a task whose sleep was the timer is not
  /// cancelled.
  private func perform(_ effects: StreamTimingMachine<Element>.Effects) {
    effects.timer?.cancel()
    guard let id = effects.start else { return }
    let subscription = timer(duration) { perform(shell.commit { $0.fire(id) }) }
    shell.withLock { $0.setTimer(subscription, id: id) }?.cancel()
  }
}
