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
    if sources.isEmpty { return .just([], ends: true) }
    return StreamSource<[Element]> { handler in
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
  /// What is known of one source.
  private struct Side: Sendable {
    var newest: (element: Element, epoch: StreamEpoch?)?
    /// Whether the source has not ended; `false` for all after the end was delivered.
    var isOpen = true
  }

  var deliveries = DeliveryQueue<StreamSignal<[Element]>>()
  private var sides: [Side]
  /// The number of sources without an element.
  private var missingCount: Int
  private var openCount: Int

  init(count: Int) {
    sides = Array(repeating: Side(), count: count)
    (missingCount, openCount) = (count, count)
  }

  /// Returns the element that was replaced, to be released without the lock.
  mutating func receive(_ signal: StreamSignal<Element>, from index: Int) -> Element? {
    guard sides[index].isOpen else { return nil }
    switch signal {
    case .element(let element, let epoch):
      let replaced = exchange(&sides[index].newest, with: (element, epoch))
      if replaced == nil { missingCount -= 1 }
      // Not before every source has an element: of n sources, each would cost n.
      if missingCount == 0 {
        let newest = sides.compactMap(\.newest)
        deliveries.append(.element(newest.map(\.element), in: .common(newest.map(\.epoch))))
      }
      return replaced?.element
    case .finished:
      sides[index].isOpen = false
      openCount -= 1
      // Without an element of this source there will be no array.
      guard sides[index].newest == nil || openCount == 0 else { return nil }
      for index in sides.indices { sides[index].isOpen = false }
      deliveries.append(.finished)
      return nil
    }
  }
}
