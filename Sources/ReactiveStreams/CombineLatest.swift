extension StreamSource {
  package func combineLatest<Other: Sendable>(
    _ other: StreamSource<Other>
  ) -> StreamSource<(Element, Other)> {
    StreamSource<(Element, Other)> { handler in
      let shell = DeliveryShell(CombineLatestMachine<Element, Other>())
      return .combined(
        shell.subscribe(handler),
        subscribe { signal in
          withExtendedLifetime(shell.commit { $0.receive(first: signal) }) {}
        },
        other.subscribe { signal in
          withExtendedLifetime(shell.commit { $0.receive(second: signal) }) {}
        })
    }
  }
}

/// The machine of `combineLatest`: the newest element of each side.
///
/// A pair is delivered when both sides have an element. The end is delivered when both sides have
/// ended, or when one has ended without an element.
struct CombineLatestMachine<First: Sendable, Second: Sendable>: DeliveryMachine {
  var deliveries = DeliveryQueue<StreamSignal<(First, Second)>>()
  private var first: First?
  private var second: Second?
  private var firstEpoch: StreamEpoch?
  private var secondEpoch: StreamEpoch?
  private var openCount = 2
  private var isFinished = false

  /// Returns the element that was replaced, to be released without the lock.
  mutating func receive(first signal: StreamSignal<First>) -> First? {
    switch signal {
    case .element(let element, let epoch):
      let replaced = first.take()
      (first, firstEpoch) = (element, epoch)
      deliverPair()
      return replaced
    case .finished:
      finishOne(isEmpty: first == nil)
      return nil
    }
  }

  /// Returns the element that was replaced, to be released without the lock.
  mutating func receive(second signal: StreamSignal<Second>) -> Second? {
    switch signal {
    case .element(let element, let epoch):
      let replaced = second.take()
      (second, secondEpoch) = (element, epoch)
      deliverPair()
      return replaced
    case .finished:
      finishOne(isEmpty: second == nil)
      return nil
    }
  }

  private mutating func deliverPair() {
    guard !isFinished, let first, let second else { return }
    deliveries.append(.element((first, second), in: .common(firstEpoch, secondEpoch)))
  }

  private mutating func finishOne(isEmpty: Bool) {
    openCount -= 1
    guard !isFinished, isEmpty || openCount == 0 else { return }
    isFinished = true
    deliveries.append(.finished)
  }
}
