import Testing

@testable import ReactiveStreams

@Suite("flatMapLatest")
struct FlatMapLatestTests {
  private let received = Recorder<String>()

  private func subscribe(to source: StreamSource<String>) -> OperationSubscription {
    source.subscribe { [received] signal in received.record(signal.element ?? "end") }
  }

  @Test("It follows the stream of the newest element, and cancels the one before")
  func follows() {
    let outer = StateCell(0)
    let inners = [StateCell("a0"), StateCell("b0")]
    let subscription = subscribe(to: outer.source.flatMapLatest { inners[$0].source })
    #expect(received.elements == ["a0"])
    inners[0].set("a1")
    outer.set(1)
    #expect(inners.map(\.subscriberCount) == [0, 1])
    inners[0].set("a2")
    inners[1].set("b1")
    #expect(received.elements == ["a0", "a1", "b0", "b1"])
    subscription.cancel()
    #expect(outer.subscriberCount == 0)
    #expect(inners.map(\.subscriberCount) == [0, 0])
  }

  @Test("It ends when the outer stream and the present inner stream have both ended")
  func ends() {
    let outer = StateCell(0)
    let inners = [StateCell<String>(), StateCell<String>()]
    let subscription = subscribe(to: outer.source.flatMapLatest { inners[$0].source })
    inners[0].finish()
    #expect(inners[0].subscriberCount == 0)
    outer.set(1)
    outer.finish()
    inners[1].set("b")
    #expect(received.elements == ["b"])
    inners[1].finish()
    #expect(received.elements == ["b", "end"])
    subscription.cancel()
  }

  @Test("A stream that ends during its subscription is cancelled at once")
  func endsInSubscribe() {
    let outer = StateCell(0)
    let isCancelled = Box(0)
    let ended = StreamSource<String> { handler in
      handler(.element("only"))
      handler(.finished)
      return OperationSubscription { isCancelled.increment() }
    }
    let subscription = subscribe(to: outer.source.flatMapLatest { _ in ended })
    #expect(isCancelled.value == 1)
    outer.finish()
    #expect(received.elements == ["only", "end"])
    subscription.cancel()
  }

  @Test("The closure may send an outer element: the stream of the newest is followed")
  func reentrantOuter() {
    let outer = StateCell(0)
    let inners = (0..<4).map { StateCell("inner \($0)") }
    let source = outer.source.flatMapLatest { index in
      if index < 3 { outer.set(index + 1) }
      return inners[index].source
    }
    let subscription = subscribe(to: source)
    #expect(received.elements.last == "inner 3")
    #expect(inners.map(\.subscriberCount) == [0, 0, 0, 1])
    subscription.cancel()
    #expect(inners.map(\.subscriberCount) == [0, 0, 0, 0])
  }

  @Test("A cancel inside the closure leaves no subscription")
  func cancelInClosure() {
    let outer = StateCell<Int>()
    let inner = StateCell("inner")
    let box = Box<OperationSubscription?>(nil)
    let source = outer.source.flatMapLatest { _ in
      box.cancel()
      return inner.source
    }
    box.exchange(subscribe(to: source))
    outer.set(1)
    #expect(outer.subscriberCount == 0)
    #expect(inner.subscriberCount == 0)
    #expect(received.elements == [])
  }

  @Test("An outer element that arrives after a cancel is ignored")
  func elementAfterCancel() throws {
    let inFlight = Box<StreamSource<Int>.Handler?>(nil)
    let outer = StreamSource<Int> { handler in
      inFlight.exchange(handler)
      return .empty
    }
    let inner = StateCell("inner")
    let transformed = Box(0)
    let source = outer.flatMapLatest { _ in
      transformed.increment()
      return inner.source
    }
    let subscription = subscribe(to: source)
    let deliver = try #require(inFlight.exchange(nil))
    subscription.cancel()
    deliver(.element(1))
    #expect(transformed.value == 0)
    #expect(inner.subscriberCount == 0)
    #expect(received.elements == [])
  }

  @Test("A handler that cancels does not receive queued elements")
  func cancelInHandler() {
    let outer = StateCell(0)
    let inners = [StateCell<String>(), StateCell("b")]
    let box = Box<OperationSubscription?>(nil)
    box.exchange(
      outer.source.flatMapLatest { inners[$0].source }.subscribe { [received] signal in
        received.record(signal.element ?? "end")
        // The other thread queues the first element of its stream for this one, and returns.
        if signal.element == "a" { #expect(onThread { outer.set(1) }.wait()) }
        box.cancel()
      })
    inners[0].set("a")
    #expect(received.elements == ["a"])
    #expect(inners.map(\.subscriberCount) == [0, 0])
  }

  @Test(
    "No element of an earlier stream is delivered after one of a later stream",
    arguments: 0..<100)
  func noStaleElement(round: Int) {
    let outer = StateCell(0)
    let inners = (0..<50).map { StateCell([$0, -1]) }
    let seen = Recorder<[Int]>()
    let source = outer.source.flatMapLatest { inners[$0].source }
    let subscription = source.subscribe { if let element = $0.element { seen.record(element) } }
    let ended = onThreads(4) { thread in
      for index in 0..<50 {
        if thread == 0 { outer.set(index) }
        for number in 0..<3 { inners[index].set([index, thread * 3 + number]) }
      }
    }
    #expect(ended)
    let order = seen.elements.map { $0[0] }
    #expect(order == order.sorted())
    #expect(order.last == 49)
    #expect(inners.map(\.subscriberCount).reduce(0, +) == 1)
    subscription.cancel()
    #expect(inners.allSatisfy { $0.subscriberCount == 0 })
  }

  @Test("A cancel that races with outer elements leaves no subscription", arguments: 0..<200)
  func cancelRace(round: Int) {
    let outer = StateCell(0)
    let inner = StateCell("inner")
    let subscription = subscribe(to: outer.source.flatMapLatest { _ in inner.source })
    let ended = onThreads(3) { thread in
      if thread == 0 {
        subscription.cancel()
      } else {
        for number in 0..<5 { outer.set(number) }
      }
    }
    #expect(ended)
    #expect(outer.subscriberCount == 0)
    #expect(inner.subscriberCount == 0)
  }

  @Test("An operator releases everything with its subscription")
  func memory() {
    let live = LiveCount()
    let outer = StateCell(0)
    let inner = StateCell(1)
    do {
      let held = Counted(in: live)
      let source = outer.source.flatMapLatest { _ in
        _ = held
        return inner.source
      }
      let subscription = source.subscribe { _ in _ = held }
      outer.set(1)
      #expect(live.now == 1)
      subscription.cancel()
    }
    #expect(live.now == 0)
  }
}
