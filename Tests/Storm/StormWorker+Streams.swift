import Operation
import SharingOperation

extension StormWorker {
  private mutating func wrapper(from first: Int = 0) -> StormModel.Wrapper {
    model.wrappers[number(first..<model.wrappers.count)]
  }

  mutating func useWrapper() {
    let request = storm.requests.query(number(0..<storm.size))
    let (number, outcome) = (number(0..<100), number(0..<9))
    switch outcome {
    case 0..<3:
      let wrapper = wrapper()
      wrapper.bind(to: request)
      if let store = wrapper.store { storm.trace(store, at: store.path) }
    case 3: model.wrappers[0].bind(to: nil)
    case 4: wrapper(from: 1).withLock { $0?.edits.append(number) }
    case 5: wrapper(from: 1).setResult(to: .failure(StormFailure()))
    case 6:
      let wrapper = wrapper()
      spawn { try await wrapper.fetch() }
    case 7:
      let wrapper = wrapper()
      spawn { _ = try await wrapper.value() }
    default:
      let wrapper = wrapper()
      _ = (wrapper.wrappedValue, wrapper.error, wrapper.isPrevious, wrapper.description)
    }
  }

  /// Reads the first elements of a stream of several sources, or of one with times.
  mutating func readOperators() {
    let (first, second, count) = (wrapper().values, store().values, number(1..<6))
    let time = Duration.milliseconds(number(1..<2_000))
    switch number(0..<7) {
    case 0: read(count, of: first.merge(second))
    case 1: read(count, of: first.combineLatest(second))
    case 2: read(count, of: first.flatMapLatest { _ in second })
    case 3: read(count, of: second.removeDuplicates().scan(0) { sum, _ in sum + 1 })
    case 4: read(count, of: first.debounce(for: time, clock: storm.clock))
    case 5: read(count, of: second.throttle(for: time, clock: storm.clock))
    default: read(count, of: model.broadcast.values(buffering: .newest(2)))
    }
  }

  mutating func read<Stream: AsyncSequence & Sendable>(_ count: Int, of stream: Stream) {
    spawn {
      var left = count
      for try await _ in stream {
        left -= 1
        if left == 0 { break }
      }
    }
  }
}
