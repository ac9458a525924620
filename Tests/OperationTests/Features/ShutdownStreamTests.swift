import Operation
import Testing

@Suite("Streams that end while an element is sent", .timeLimit(.minutes(5)))
struct ShutdownStreamTests {
  private static let last = 30

  /// A client with two observed stores. A writer increments the value of one of them.
  private struct Fixture {
    let client = OperationClient(
      defaults: OperationDefaults(retryLimit: 0, runsAutomatically: false), clock: ManualClock())
    let counted: OperationStore<QueryState<Int, any Error>>
    let other: OperationStore<QueryState<Int, any Error>>
    /// A gate that opens when the writer has written its last number.
    let isWritten = AsyncGate()

    init() {
      counted = client.store(for: OpenQuery(script: Script(), path: ["counted"]))
      other = client.store(for: OpenQuery(script: Script(), path: ["other"]))
      counted.currentValue = 0
      other.currentValue = 0
    }

    /// Reads a stream to its end, and once more after the last write.
    func read<Element: Sendable>(
      _ stream: some AsyncSequence<Element, Never> & Sendable
    ) -> Task<[Element], Never> {
      // The stream subscribes here, before anything is written.
      var iterator = stream.makeAsyncIterator()
      return Task { [isWritten] in
        var elements: [Element] = []
        while let element = await iterator.next(isolation: nil) { elements.append(element) }
        await isWritten.wait()
        let late = await iterator.next(isolation: nil)
        #expect(late == nil, "there is no element after the end")
        return elements
      }
    }

    func write() {
      for number in 1...ShutdownStreamTests.last { counted.currentValue = number }
      isWritten.open()
    }
  }

  @Test("A merged or combined stream has no element of a store after the shutdown of its client")
  func elementAfterEnd() async {
    let fixture = Fixture()
    let other = Broadcast<Int?>()
    let numbers = fixture.counted.states(buffering: .all).map(\.currentValue)
    var merged = numbers.merge(other.values).makeAsyncIterator()
    var combined = numbers.combineLatest(other.values).map { [$0.0, $0.1] }.makeAsyncIterator()
    await fixture.client.shutdown(within: .zero)
    fixture.counted.currentValue = 5
    other.send(7)
    #expect(await merged.next() == 0)
    #expect(await merged.next() == 7)
    #expect(await combined.next() == [0, 7])
  }

  @Test("A stream delivers what is written while a shutdown saves, and ends after that")
  func writtenWhileSaving() async {
    let (saves, gates) = (EventLog<Int>(), [AsyncGate(), AsyncGate()])
    var held = HeldStorage(base: MemoryStorage())
    held.beforeSave = {
      saves.append(0)
      await gates[saves.count == 1 ? 0 : 1].wait()
    }
    held.gate.open()
    let client = savingClient(held)
    let query = Query<Int, any Error>(path: ["counted"]) { _ in 0 }.manual().persisted()
    let store = client.store(for: query)
    for await state in store.states where !state.isRestoring { break }
    store.currentValue = 1
    var values = store.values.makeAsyncIterator()
    let shutdown = Task { await client.shutdown(within: .zero) }
    await saves.wait(for: 1)
    // The last flush of the shutdown saves this.
    store.currentValue = 2
    gates[0].open()
    await saves.wait(for: 2)
    store.currentValue = 3
    gates[1].open()
    _ = await shutdown.value
    var received: [Int?] = []
    while let value = await values.next() { received.append(value) }
    #expect(received.last == 3)
  }

  @Test("Each stream ends once, and has the elements before its end in order", arguments: 0..<100)
  func concurrentEnd(round: Int) async {
    let fixture = Fixture()
    let (counted, other) = (fixture.counted, fixture.other)
    let all = fixture.read(counted.states(buffering: .all).map { $0.currentValue })
    let newest = [
      counted.values,
      counted.values.map { $0 },
      counted.values.merge(counted.values.filter { $0 == nil }),
      counted.values.combineLatest(other.values).map { $0.0 },
      other.values.flatMapLatest { _ in counted.values },
      StateStream.combineLatest([counted.values, other.values]).map { $0[0] },
    ].map { fixture.read($0) }
    let events = fixture.read(counted.events.compactMap { $0.state?.currentValue })
    let changes = fixture.read(fixture.client.storeChanges(matching: []))
    async let written: Void = Task.detached { fixture.write() }.value
    // The stream ends at a different time in each round.
    for _ in 0..<round { await Task.yield() }
    await fixture.client.shutdown(within: .zero)
    await written
    for numbers in [await all.value.compactMap { $0 }, await events.value.compactMap { $0 }] {
      #expect(numbers == Array(0..<numbers.count), "no element is missing before the end")
      #expect(!numbers.isEmpty)
    }
    for reader in newest {
      let numbers = await reader.value.compactMap { $0 }
      #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 }, "\(numbers)")
      #expect(!numbers.isEmpty)
    }
    _ = await changes.value
  }
}
