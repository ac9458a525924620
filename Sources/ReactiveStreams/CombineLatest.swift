import Synchronization

extension StreamSource {
  package func combineLatest<Other: Sendable>(
    _ other: StreamSource<Other>
  ) -> StreamSource<(Element, Other)> {
    StreamSource<(Element, Other)> { handler in
      var initial = CombineLatestMachine<Element, Other>()
      let subscriber = Subscriber(handler)
      _ = initial.deliveries.subscribe(subscriber)
      let shell = CombineLatest(initial)
      return .combined(
        OperationSubscription { subscriber.deactivate() },
        subscribe { signal in
          withExtendedLifetime(shell.machine.commit { $0.receive(first: signal) }) {}
        },
        other.subscribe { signal in
          withExtendedLifetime(shell.machine.commit { $0.receive(second: signal) }) {}
        })
    }
  }
}

/// The lock guards the newest element of each side and what is still to be told.
private final class CombineLatest<First: Sendable, Second: Sendable>: Sendable {
  let machine: Mutex<CombineLatestMachine<First, Second>>

  init(_ initial: consuming CombineLatestMachine<First, Second>) {
    machine = Mutex(initial)
  }
}

/// The machine of `combineLatest`: a pair is told when both sides are there, and the end when both
/// have ended or one ended before it gave anything.
struct CombineLatestMachine<First: Sendable, Second: Sendable>: DeliveryMachine {
  var deliveries = DeliveryQueue<StreamSignal<(First, Second)>>()
  private var first: First?
  private var second: Second?
  private var openCount = 2
  private var isFinished = false

  /// Returns the element that gave way, so that it is released without the lock.
  mutating func receive(first signal: StreamSignal<First>) -> First? {
    switch signal {
    case .element(let element):
      let earlier = first.take()
      first = element
      tell()
      return earlier
    case .finished:
      finishOne(isEmpty: first == nil)
      return nil
    }
  }

  /// Returns the element that gave way, so that it is released without the lock.
  mutating func receive(second signal: StreamSignal<Second>) -> Second? {
    switch signal {
    case .element(let element):
      let earlier = second.take()
      second = element
      tell()
      return earlier
    case .finished:
      finishOne(isEmpty: second == nil)
      return nil
    }
  }

  private mutating func tell() {
    guard !isFinished, let first, let second else { return }
    deliveries.append(.element((first, second)))
  }

  private mutating func finishOne(isEmpty: Bool) {
    openCount -= 1
    guard !isFinished, isEmpty || openCount == 0 else { return }
    isFinished = true
    deliveries.append(.finished)
  }
}
