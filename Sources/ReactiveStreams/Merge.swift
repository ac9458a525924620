extension StreamSource {
  package func merge(_ other: StreamSource) -> StreamSource {
    StreamSource { handler in
      let shell = DeliveryShell(MergeMachine<Element>())
      return .combined(
        shell.subscribe(handler),
        subscribe { signal in shell.commit { $0.receive(signal) } },
        other.subscribe { signal in shell.commit { $0.receive(signal) } })
    }
  }
}

/// The machine of `merge`: how many of the two sides have not ended.
///
/// Elements of both sides are delivered in the order in which they arrive. The end is delivered
/// when both sides have ended.
struct MergeMachine<Element: Sendable>: DeliveryMachine {
  private enum State: Sendable {
    case bothOpen
    case oneOpen
    case finished
  }

  var deliveries = DeliveryQueue<StreamSignal<Element>>()
  private var state = State.bothOpen

  mutating func receive(_ signal: StreamSignal<Element>) {
    switch (signal, state) {
    case (_, .finished): return
    case (.element, _): deliveries.append(signal)
    case (.finished, .bothOpen): state = .oneOpen
    case (.finished, .oneOpen):
      state = .finished
      deliveries.append(.finished)
    }
  }
}
