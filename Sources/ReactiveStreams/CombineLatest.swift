extension StreamSource {
  package func combineLatest<Other: Sendable>(
    _ other: StreamSource<Other>
  ) -> StreamSource<(Element, Other)> {
    let firsts = map { (Element?.some($0), Other?.none) }
    let seconds = other.map { (Element?.none, Other?.some($0)) }
    let both = StreamSource<(Element?, Other?)>.combineLatest([firsts, seconds])
    return both.compactMap { newest in
      guard let first = newest[0].0, let second = newest[1].1 else { return nil }
      return (first, second)
    }
  }

  /// Returns a source of arrays, which have the newest element of every source, in the order of the
  /// sources. Without sources it sends one empty array and ends.
  package static func combineLatest(_ sources: [StreamSource]) -> StreamSource<[Element]> {
    StreamSource<[Element]> { handler in
      if sources.isEmpty {
        handler(.element([]))
        handler(.finished)
        return .empty
      }
      let shell = DeliveryShell(CombineLatestMachine<Element>(count: sources.count))
      let output = shell.subscribe(handler)
      let inputs = sources.enumerated().map { index, source in
        source.subscribe { signal in
          withExtendedLifetime(shell.commit { $0.receive(signal, from: index) }) {}
        }
      }
      return .combined([output] + inputs)
    }
  }
}

/// The machine of `combineLatest`: the newest element of every source.
///
/// - *incomplete*: a number of open sources have sent no element yet.
/// - *complete*: every source has an element, and an array is delivered for every further one.
/// - *finished*: all sources have ended, or one has ended without an element.
struct CombineLatestMachine<Element: Sendable>: DeliveryMachine {
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

  /// Returns the element that was replaced, to be released without the lock.
  mutating func receive(_ signal: StreamSignal<Element>, from index: Int) -> Element? {
    switch (signal, state) {
    case (_, .finished): return nil
    case (.element(let element, let epoch), _):
      let replaced = newest[index].take()
      (newest[index], epochs[index]) = (element, epoch)
      if replaced == nil { noteFirst() }
      if case .complete = state {
        deliveries.append(.element(newest.compactMap { $0 }, in: .common(epochs)))
      }
      return replaced
    case (.finished, _):
      openCount -= 1
      if newest[index] == nil || openCount == 0 {
        state = .finished
        deliveries.append(.finished)
      }
      return nil
    }
  }

  private mutating func noteFirst() {
    guard case .incomplete(let missing) = state else { return }
    state = missing == 1 ? .complete : .incomplete(missing: missing - 1)
  }
}
