import SharingOperation
import Testing

/// A query that can do something while its path is read.
private struct Detail: SimpleQueryRequest {
  let id: Int
  var onPath: @Sendable () -> Void = {}

  var path: OperationPath {
    onPath()
    return ["detail", id]
  }

  func fetch(in context: OperationContext) async throws -> String { "detail \(id)" }
}

@Suite struct DebouncedBindingTests {
  private let clock = ManualClock()

  @Test("A delayed binding is made when no other one is requested for the duration")
  func pause() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    let wrapper = SharedQuery(Detail(id: 0), client: client)
    try await wrapper.fetch()
    for id in 1...3 {
      wrapper.bind(to: Detail(id: id), debouncedBy: .milliseconds(300), keepingPrevious: true)
      await clock.advance(by: .milliseconds(200))
      #expect(wrapper.store?.path == ["detail", 0])
    }
    await clock.advance(by: .milliseconds(100))
    while wrapper.store?.path != ["detail", 3] { await Task.yield() }
    #expect(client.store(with: ["detail", 1]) == nil)
    #expect(try await wrapper.value() == "detail 3")
  }

  @Test("An immediate binding cancels a delayed one, and so does the end of the wrapper")
  func cancelled() async throws {
    let client = OperationClient(defaults: .testing, clock: clock)
    do {
      let wrapper = SharedQuery(Detail(id: 0), client: client)
      wrapper.bind(to: Detail(id: 1), debouncedBy: .seconds(1))
      wrapper.bind(to: Detail(id: 2), debouncedBy: .zero)
      #expect(wrapper.store?.path == ["detail", 2])
      await clock.advance(by: .seconds(2))
      #expect(wrapper.store?.path == ["detail", 2])
      wrapper.bind(to: Detail(id: 3), debouncedBy: .seconds(1))
    }
    await clock.advance(by: .seconds(2))
    #expect(client.store(with: ["detail", 1]) == nil)
    #expect(client.store(with: ["detail", 3]) == nil)
  }

  @Test(
    "A binding that is requested while a delayed one is made replaces it",
    arguments: [Duration.zero, .seconds(1)])
  func replacedWhileMade(delay: Duration) async {
    let client = OperationClient.quiet(clock: clock)
    let wrapper = SharedQuery(Detail(id: 0), client: client)
    let paths = Counter()
    let projected = Log<SharedQuery<Detail.State>>()
    projected.append(wrapper.projectedValue)
    let first = Detail(id: 1) {
      if paths.increment() == 1 {
        projected.elements[0].bind(to: Detail(id: 2), debouncedBy: delay)
      }
    }
    wrapper.bind(to: first, debouncedBy: .seconds(1))
    await clock.advance(by: .seconds(1))
    #expect(paths.count > 0)
    #expect(wrapper.store?.path == ["detail", delay == .zero ? 2 : 0])
    await clock.advance(by: .seconds(1))
    #expect(wrapper.store?.path == ["detail", 2])
    projected.removeAll()
  }
}
