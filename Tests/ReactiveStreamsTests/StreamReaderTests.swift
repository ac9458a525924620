import Testing

@testable import ReactiveStreams

/// The ends of reads: cancellation, the release of the iterator, the end of the source.
@Suite("StreamReader, cancellation and lifetime")
struct StreamReaderTests {
  private let executor = ManualExecutor()
  private let cell = StateCell<Int>()
  private let read = Recorder<Int?>()

  /// Starts a task that reads once.
  private func readOnce() -> Task<Void, Never> {
    executor.start { [cell, read] in
      var iterator = cell.stream.makeAsyncIterator()
      read.record(await iterator.next())
    }
  }

  @Test("The cancellation of a suspended read ends it with nil and unsubscribes")
  func cancelWaiting() {
    let task = readOnce()
    executor.run()
    #expect(cell.subscriberCount == 1)
    #expect(read.elements == [])
    task.cancel()
    // The task has not run since, so the cancellation itself unsubscribed.
    #expect(cell.subscriberCount == 0)
    executor.run()
    #expect(read.elements == [nil])
  }

  @Test("A read in a cancelled task ends with nil and unsubscribes")
  func cancelBefore() {
    let task = executor.start { [cell, read] in
      var iterator = cell.stream.makeAsyncIterator()
      cell.set(1)
      #expect(cell.subscriberCount == 1)
      read.record(await iterator.next())
      #expect(cell.subscriberCount == 0)
      read.record(await iterator.next())
    }
    task.cancel()
    executor.run()
    #expect(read.elements == [nil, nil])
  }

  @Test("A cancelled read ends the iterator: later reads return nil, also in another task")
  func cancelledForGood() async {
    let reader = StreamReader(cell.source, policy: .all)
    let task = executor.start { [read] in read.record(await reader.next()) }
    executor.run()
    task.cancel()
    executor.run()
    cell.set(1)
    #expect(await reader.next() == nil)
    #expect(read.elements == [nil])
  }

  @Test("An element that a read received before its cancellation is returned")
  func handedOver() {
    let task = readOnce()
    executor.run()
    cell.set(1)
    task.cancel()
    executor.run()
    #expect(read.elements == [1])
    #expect(cell.subscriberCount == 0)
  }

  @Test("A released iterator unsubscribes, also one that never read")
  func dropped() async {
    var unread = Optional(cell.stream.makeAsyncIterator())
    var another = Optional(cell.stream.makeAsyncIterator())
    #expect(cell.subscriberCount == 2)
    cell.set(1)
    #expect(await another?.next() == 1)
    unread = nil
    #expect(cell.subscriberCount == 1)
    another = nil
    #expect(cell.subscriberCount == 0)
    _ = (unread, another)
  }

  @Test("A loop that breaks unsubscribes")
  func breaks() async {
    let cell = StateCell(1)
    for await element in cell.stream {
      #expect(element == 1)
      break
    }
    #expect(cell.subscriberCount == 0)
  }

  @Test("A cancellation does not affect other readers")
  func others() {
    let first = readOnce()
    let second = readOnce()
    executor.run()
    first.cancel()
    executor.run()
    #expect(cell.subscriberCount == 1)
    cell.set(7)
    executor.run()
    #expect(read.elements == [nil, 7])
    second.cancel()
  }

  @Test("Every read ends once when cancellation, elements and the end race", arguments: 0..<200)
  func race(round: Int) async {
    let cell = StateCell(0)
    let stream = cell.stream
    let task = Task {
      var last = -1
      for await element in stream {
        #expect(element > last)
        last = element
      }
    }
    let done = [
      onThread { for element in 1...20 { cell.set(element) } },
      onThread { task.cancel() },
      onThread { if round % 2 == 0 { cell.finish() } },
    ]
    await task.value
    for gate in done { gate.wait() }
    #expect(cell.subscriberCount == 0)
  }

  @Test("A cancelled read has unsubscribed when it returns", arguments: 0..<200)
  func cancelRace(round: Int) async {
    let cell = StateCell<Int>()
    let task = Task {
      var iterator = cell.stream.makeAsyncIterator()
      let element = await iterator.next()
      return (element, cell.subscriberCount)
    }
    let done = onThread { task.cancel() }
    let (element, count) = await task.value
    #expect(element == nil)
    #expect(count == 0)
    done.wait()
  }

  @Test("Unread elements are released with a cancellation, and with the iterator")
  func release() async {
    let live = LiveCount()
    let broadcast = Broadcast<Counted>()
    let reader = StreamReader(broadcast.values.source, policy: .all)
    var iterator = Optional(broadcast.values.makeAsyncIterator())
    for number in 0..<10 { broadcast.send(Counted(number, in: live)) }
    #expect(live.now == 10)
    let task = executor.start { _ = await reader.next() }
    task.cancel()
    executor.run()
    #expect(live.now == 10)
    #expect(await iterator?.next()?.number == 0)
    #expect(live.now == 9)
    iterator = nil
    #expect(live.now == 0)
  }

  @Test("An unread element that is replaced is released with no lock held")
  func releasedWithoutLock() {
    let broadcast = Broadcast<DeinitAction?>()
    let seen = Box(0)
    let subscription = broadcast.subscribe { _ in seen.increment() }
    let iterator = broadcast.values(buffering: .newest(1)).makeAsyncIterator()
    let done = onThread {
      for _ in 0..<3 { broadcast.send(DeinitAction { broadcast.send(nil) }) }
    }
    #expect(done.wait())
    // Three elements were sent, the two that were replaced sent one each, and the third is kept.
    #expect(seen.value == 5)
    subscription.cancel()
    _ = iterator
  }
}
