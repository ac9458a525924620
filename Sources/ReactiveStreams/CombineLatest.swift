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
/// Once every source has an element, an array is delivered for every further one. The end is delivered
/// when all sources have ended, or one has ended without an element. Signals of a source that has ended
/// are dropped.
struct CombineLatestMachine<Element: Sendable>: DeliveryMachine {
  var deliveries = DeliveryQueue<StreamSignal<[Element]>>()
  private var newest: [Element?]
  private var epochs: [StreamEpoch?]
  /// The number of sources without an element.
  private var missingCount: Int
  /// Whether each source has not ended; all are `false` after the end was delivered.
  private var isOpen: [Bool]

  init(count: Int) {
    newest = Array(repeating: nil, count: count)
    epochs = Array(repeating: nil, count: count)
    missingCount = count
    isOpen = Array(repeating: true, count: count)
  }

  /// Returns the element that was replaced, to be released without the lock.
  mutating func receive(_ signal: StreamSignal<Element>, from index: Int) -> Element? {
    guard isOpen[index] else { return nil }
    switch signal {
    case .element(let element, let epoch):
      let replaced = newest[index].take()
      (newest[index], epochs[index]) = (element, epoch)
      if replaced == nil { missingCount -= 1 }
      if missingCount == 0 {
        deliveries.append(.element(newest.compactMap { $0 }, in: .common(epochs)))
      }
      return replaced
    case .finished:
      // Without an element of this source there will be no array.
      if newest[index] == nil { isOpen = isOpen.map { _ in false } }
      isOpen[index] = false
      if !isOpen.contains(true) { deliveries.append(.finished) }
      return nil
    }
  }
}
