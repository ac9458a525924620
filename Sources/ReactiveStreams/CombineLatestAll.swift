extension StreamSource {
  /// Returns a source of arrays, which have the newest element of every source, in the order of the
  /// sources. Without sources it sends one empty array and ends.
  package static func combineLatest(_ sources: [StreamSource]) -> StreamSource<[Element]> {
    StreamSource<[Element]> { handler in
      let shell = DeliveryShell(CombineLatestAllMachine<Element>(count: sources.count))
      let output = shell.subscribe(handler) { $0.subscribe($1) }
      let inputs = sources.enumerated().map { index, source in
        source.subscribe { signal in
          withExtendedLifetime(shell.commit { $0.receive(signal, from: index) }) {}
        }
      }
      return .combined([output] + inputs)
    }
  }
}

/// The machine of `combineLatest` of an array: the newest element of every source.
///
/// - *incomplete*: a number of open sources have sent no element yet.
/// - *complete*: every source has an element, and an array is delivered for every further one.
/// - *finished*: all sources have ended, or one has ended without an element.
struct CombineLatestAllMachine<Element: Sendable>: DeliveryMachine {
  private enum State: Sendable {
    case incomplete(missing: Int)
    case complete
    case finished
  }

  var deliveries = DeliveryQueue<StreamSignal<[Element]>>()
  private var state: State
  private var newest: [Element?]
  private var epochs: [StreamEpoch?]
  private var openCount: Int

  init(count: Int) {
    state = .incomplete(missing: count)
    newest = Array(repeating: nil, count: count)
    epochs = Array(repeating: nil, count: count)
    openCount = count
  }

  /// Adds the subscriber. Without sources, nothing else changes the machine: it sends all at once.
  mutating func subscribe(_ subscriber: Subscriber<StreamSignal<[Element]>>) -> UInt64 {
    let id = deliveries.subscribe(subscriber)
    if case .incomplete(missing: 0) = state {
      deliverArray()
      finish()
    }
    return id
  }

  /// Returns the element that was replaced, to be released without the lock.
  mutating func receive(_ signal: StreamSignal<Element>, from index: Int) -> Element? {
    switch (signal, state) {
    case (_, .finished): return nil
    case (.element(let element, let epoch), _):
      let replaced = newest[index].take()
      (newest[index], epochs[index]) = (element, epoch)
      if replaced == nil { noteFirst() }
      if case .complete = state { deliverArray() }
      return replaced
    case (.finished, _):
      openCount -= 1
      if newest[index] == nil || openCount == 0 { finish() }
      return nil
    }
  }

  private mutating func noteFirst() {
    guard case .incomplete(let missing) = state else { return }
    state = missing == 1 ? .complete : .incomplete(missing: missing - 1)
  }

  private mutating func deliverArray() {
    deliveries.append(.element(newest.compactMap { $0 }, in: .common(epochs)))
  }

  private mutating func finish() {
    state = .finished
    deliveries.append(.finished)
  }
}
