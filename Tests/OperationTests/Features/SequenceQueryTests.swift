import Operation
import Testing

@Suite struct SequenceQueryTests {
  private let clock = ManualClock()

  private func client() -> OperationClient { OperationClient(defaults: .testing, clock: clock) }

  @Test("The newest element is the value, and the run lasts as long as the sequence")
  func newest() async throws {
    let (stream, source) = AsyncStream.makeStream(of: Int.self)
    let store = client().store(for: Query(path: ["newest"], newestOf: { _ in stream }))
    var values = store.values.makeAsyncIterator()
    #expect(await values.next() == .some(nil))
    source.yield(1)
    #expect(await values.next() == 1)
    source.yield(2)
    #expect(await values.next() == 2)
    #expect(store.isLoading)
    source.finish()
    while store.isLoading { await Task.yield() }
    #expect(store.currentValue == 2)
    #expect(store.status.isSuccess)
  }

  @Test("An observed map follows each element, and a value that is written meanwhile")
  func map() async {
    let (stream, source) = AsyncStream.makeStream(of: Int.self)
    let client = client()
    let query = Query(path: ["newest"], newestOf: { _ in stream })
    let store = client.store(for: query.map { "<\($0)>" })
    var values = store.values.makeAsyncIterator()
    #expect(await values.next() == .some(nil))
    await clock.settle()
    // The run of the map waits for the end of the sequence now.
    source.yield(1)
    #expect(await values.next() == "<1>")
    #expect(store.isLoading)
    source.yield(2)
    #expect(await values.next() == "<2>")
    client.store(for: query).currentValue = 3
    #expect(await values.next() == "<3>")
    source.finish()
    while store.isLoading { await Task.yield() }
    #expect(store.currentValue == "<2>")
  }

  @Test("The sequence ends with the last subscriber") func lastSubscriber() async {
    let (stream, source) = AsyncStream.makeStream(of: Int.self)
    let ended = EventLog<Bool>()
    source.onTermination = { _ in ended.append(true) }
    let store = client().store(for: Query(path: ["newest"], newestOf: { _ in stream }))
    let subscriptions = [store.subscribe { _ in }, store.subscribe { _ in }]
    source.yield(1)
    while store.currentValue != 1 { await Task.yield() }
    subscriptions[0].cancel()
    #expect(store.isLoading)
    subscriptions[1].cancel()
    await ended.wait(for: 1)
    #expect(!store.isLoading)
  }

  @Test("The retries of the request start a failed sequence again") func reconnects() async throws {
    let connections = EventLog<Int>()
    let query = Query(
      path: ["socket"],
      newestOf: { _ in
        let connection = connections.append(0)
        return AsyncThrowingStream<Int, any Error> { source in
          source.yield(connection)
          source.finish(throwing: connection < 3 ? Refused(attempt: connection) : nil)
        }
      }
    ).retry(limit: 5).backoff(.noBackoff)
    #expect(try await client().fetch(query) == 3)
    #expect(connections.count == 3)
  }

  @Test("A sequence without an element is a failure") func empty() async {
    let query = Query(
      path: ["empty"], newestOf: { _ in AsyncStream<Int> { $0.finish() } })
    await #expect(throws: SequenceQueryError.noElement) { try await client().fetch(query) }
  }

  @Test("Elements are appended, or reduced by a closure") func reduced() async throws {
    let numbers = { @Sendable (_: OperationContext) in
      AsyncStream<Int> { source in
        for number in 1...3 { source.yield(number) }
        source.finish()
      }
    }
    let list = Query(path: ["list"], appending: numbers)
    #expect(try await client().fetch(list) == [1, 2, 3])
    let sum = Query(path: ["sum"], reducingInto: 0, elements: numbers) { $0 += $1 }
    #expect(try await client().fetch(sum) == 6)
    let nothing = Query(
      path: ["none"], appending: { _ in AsyncStream<Int> { $0.finish() } })
    #expect(try await client().fetch(nothing) == [])
  }

  @Test(
    "The cached value is replaced by the first element, or at the end",
    arguments: [
      SequenceReplacement.atFirstElement, .atEnd,
    ])
  func replacement(_ replacement: SequenceReplacement) async throws {
    let (stream, source) = AsyncStream.makeStream(of: Int.self)
    let query = Query(
      path: ["list"], replacingValue: replacement, appending: { _ in stream }
    ).manual()
    let store = client().store(for: query, initialValue: [9])
    let run = Task { try await store.fetch() }
    while !store.isLoading { await Task.yield() }
    #expect(store.currentValue == [9])
    source.yield(1)
    if replacement == .atFirstElement {
      while store.currentValue == [9] { await Task.yield() }
      #expect(store.currentValue == [1])
    } else {
      for _ in 0..<100 { await Task.yield() }
      #expect(store.currentValue == [9])
    }
    source.finish()
    #expect(try await run.value == [1])
    #expect(store.currentValue == [1])
  }
}
