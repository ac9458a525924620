import SharingOperation
import Testing

@Suite("Saved values in wrappers")
struct WrapperSavedValueTests {
  private let clock = ManualClock()
  private let storage: MemoryStorage
  private let query = NumberQuery(number: 1).manual().persisted()

  init() async throws {
    storage = MemoryStorage(clock: clock)
    let client = OperationClient(defaults: .testing, clock: clock, storage: storage)
    client.store(for: query).currentValue = [7]
    try await client.flush()
  }

  /// Starts the program again, with a storage that takes a second.
  private func restarted() -> OperationClient {
    let slow = MemoryStorage(storage.entries, clock: clock)
    slow.delay = .seconds(1)
    return OperationClient(defaults: .testing, clock: clock, storage: slow)
  }

  private func load() async {
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(1))
  }

  @Test("A reader of isRestoring is notified when the saved value was loaded")
  func restoring() async {
    @SharedQuery(query, client: restarted()) var numbers
    let value = track { #expect(numbers == nil) }
    let flag = track { #expect($numbers.isRestoring) }
    await load()
    for await state in $numbers.states where !state.isRestoring { break }
    #expect(!$numbers.isRestoring)
    #expect(numbers == [7])
    #expect(value.count == 1 && flag.count == 1)
  }

  @Test("A wrapper with a default has the default until the saved value was loaded")
  func defaulted() async {
    @SharedQuery(query, default: [0], client: restarted()) var numbers
    let flag = track { #expect($numbers.isRestoring) }
    #expect(numbers == [0])
    await load()
    for await value in $numbers.values where value != [0] { break }
    #expect(!$numbers.isRestoring && numbers == [7])
    #expect(flag.count == 1)
  }

  @Test("A wrapper restores nothing without a store, and for a request that is not saved")
  func notSaved() async {
    @SharedQuery<NumberQuery.State> var unbacked
    #expect(!$unbacked.isRestoring)
    @SharedQuery(NumberQuery(number: 2).manual(), client: restarted()) var unsaved
    #expect(!$unsaved.isRestoring)
    $unsaved.bind(to: query)
    #expect($unsaved.isRestoring)
    await load()
  }
}
