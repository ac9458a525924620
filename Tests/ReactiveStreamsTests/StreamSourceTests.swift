import Testing

@testable import ReactiveStreams

@Suite("StreamSource")
struct StreamSourceTests {
  private let heard = Recorder<String>()

  /// A source that gives these elements in its subscribe, and ends.
  private func source(_ elements: [Int]) -> StreamSource<Int> {
    StreamSource { handler in
      for element in elements { handler(.element(element)) }
      handler(.finished)
      return .empty
    }
  }

  private func listen<Element>(to source: StreamSource<Element>) -> OperationSubscription {
    source.subscribe { [heard] signal in heard.record(signal.element.map { "\($0)" } ?? "end") }
  }

  @Test("never has nothing to tell and does not end")
  func never() {
    #expect(listen(to: StreamSource<Int>.never) == .empty)
    #expect(heard.elements == [])
  }

  @Test("map, compactMap and removeDuplicates pass the end on")
  func end() {
    _ = listen(to: source([1]).map { $0 + 1 })
    _ = listen(to: source([1, 2]).compactMap { $0 > 1 ? $0 * 10 : nil })
    _ = listen(to: source([3, 3]).removeDuplicates(by: ==))
    #expect(heard.elements == ["2", "end", "20", "end", "3", "end"])
  }

  @Test("Operators stand for themselves in each subscription")
  func independence() {
    let source = source([1, 1]).removeDuplicates(by: ==)
    _ = listen(to: source)
    _ = listen(to: source)
    #expect(heard.elements == ["1", "end", "1", "end"])
  }

  @Test("A chain subscribes once, and its cancellation goes to the root")
  func chain() {
    let cell = StateCell(1)
    let source = cell.source.map { $0 }.compactMap { $0 }.removeDuplicates(by: ==)
    #expect(cell.subscriptionCount == 0)
    let subscription = listen(to: source)
    #expect(cell.subscriptionCount == 1)
    subscription.cancel()
    #expect(cell.subscriberCount == 0)
  }
}

@Suite("LastElement")
struct LastElementTests {
  @Test("It takes in what differs from the element that it took last")
  func differences() {
    let last = LastElement<Int>()
    let taken = [1, 1, 2, 1, 1].map { last.replace(with: $0, unless: ==) }
    #expect(taken == [true, false, true, true, false])
  }

  @Test("The first element is taken without a comparison, also one that is nil")
  func first() {
    let last = LastElement<Int?>()
    #expect(last.replace(with: nil) { _, _ in true })
    #expect(!last.replace(with: nil, unless: ==))
  }

  @Test("The comparison gets the earlier element first, and may use the object")
  func comparison() {
    let last = LastElement<Int>()
    _ = last.replace(with: 1, unless: ==)
    let isTaken = last.replace(with: 2) { earlier, new in
      #expect((earlier, new) == (1, 2))
      #expect(last.replace(with: 3, unless: ==))
      return false
    }
    #expect(isTaken)
    #expect(!last.replace(with: 2, unless: ==))
  }

  @Test("An element that gives way is released without the lock")
  func farewell() {
    let last = LastElement<Farewell?>()
    let released = Box(false)
    let done = onThread {
      _ = last.replace(
        with: Farewell {
          _ = last.replace(with: nil) { _, _ in true }
          released.exchange(true)
        }
      ) { _, _ in false }
      _ = last.replace(with: nil) { _, _ in false }
    }
    #expect(done.wait())
    #expect(released.value)
  }
}
