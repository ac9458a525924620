import Testing

@testable import ReactiveStreams

@Suite("StreamSource")
struct StreamSourceTests {
  private let received = Recorder<String>()

  /// Returns a source that sends elements during `subscribe`, and ends.
  private func source(_ elements: [Int]) -> StreamSource<Int> {
    StreamSource { handler in
      for element in elements { handler(.element(element)) }
      handler(.finished)
      return .empty
    }
  }

  private func subscribe<Element>(to source: StreamSource<Element>) -> OperationSubscription {
    source.subscribe { [received] signal in
      received.record(signal.element.map { "\($0)" } ?? "end")
    }
  }

  @Test("just sends one element and does not end")
  func just() {
    #expect(subscribe(to: StreamSource.just(1)) == .empty)
    #expect(received.elements == ["1"])
  }

  @Test("map, compactMap and removeDuplicates forward the end")
  func end() {
    _ = subscribe(to: source([1]).map { $0 + 1 })
    _ = subscribe(to: source([1, 2]).compactMap { $0 > 1 ? $0 * 10 : nil })
    _ = subscribe(to: source([3, 3]).removeDuplicates(by: ==))
    #expect(received.elements == ["2", "end", "20", "end", "3", "end"])
  }

  @Test("Each subscription has its own operators")
  func independence() {
    let source = source([1, 1]).removeDuplicates(by: ==)
    _ = subscribe(to: source)
    _ = subscribe(to: source)
    #expect(received.elements == ["1", "end", "1", "end"])
  }

  @Test("A chain subscribes to its source once, and its cancellation unsubscribes")
  func chain() {
    let cell = StateCell(1)
    let source = cell.source.map { $0 }.compactMap { $0 }.removeDuplicates(by: ==)
    #expect(cell.subscriptionCount == 0)
    let subscription = subscribe(to: source)
    #expect(cell.subscriptionCount == 1)
    subscription.cancel()
    #expect(cell.subscriberCount == 0)
  }

  @Test("removeDuplicates compares the last sent element, first, with the new one")
  func comparison() {
    let compared = Recorder<String>()
    let source = source([1, 1, 2, 1, 1]).removeDuplicates {
      compared.record("\($0) \($1)")
      return $0 == $1
    }
    _ = subscribe(to: source)
    #expect(received.elements == ["1", "2", "1", "end"])
    #expect(compared.elements == ["1 1", "1 2", "2 1", "1 1"])
  }

  @Test("removeDuplicates sends the first element without a comparison, also if it is nil")
  func first() {
    let source = StreamSource<Int?> { handler in
      handler(.element(nil))
      handler(.element(nil))
      return .empty
    }
    _ = subscribe(to: source.removeDuplicates { _, _ in true })
    #expect(received.elements == ["nil"])
  }
}

@Suite("LastElement")
struct LastElementTests {
  @Test("A replaced element is released with no lock held")
  func releasedWithoutLock() {
    let last = LastElement<DeinitAction>()
    let released = Box(false)
    let done = onThread {
      last.set(
        DeinitAction {
          last.set(nil)
          released.exchange(true)
        })
      last.set(nil)
    }
    #expect(done.wait())
    #expect(released.value)
  }
}
