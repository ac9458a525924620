import Synchronization

/// The reader of one iterator: a subscriber with a buffer.
///
/// The subscription is made once, in the initialiser, and ends with the reader.
final class StreamReader<Element: Sendable>: Sendable {
  private let inbox: StreamInbox<Element>
  private let subscription: OperationSubscription

  init(_ source: StreamSource<Element>, policy: StreamBuffering) {
    let inbox = StreamInbox<Element>(policy: policy)
    self.inbox = inbox
    subscription = source.subscribe { inbox.receive($0) }
  }

  /// Waits for the next element.
  ///
  /// - Parameter dropsOutdated: Whether elements are dropped whose epoch is over.
  nonisolated(nonsending) func next(dropsOutdated: Bool = false) async -> Element? {
    while case .element(let element, let epoch) = await inbox.next(
      onCancel: { [subscription] in subscription.cancel() })
    {
      if !dropsOutdated || epoch?.isOver != true { return element }
    }
    return nil
  }

  deinit { subscription.cancel() }
}

/// The buffer that a reader and its source share.
///
/// It is separate from the reader, so that the source does not retain the reader. The lock guards the
/// machine; continuations are resumed without it.
private final class StreamInbox<Element: Sendable>: Sendable {
  // Every wait for an element makes one: the benchmark state stream.
  private typealias Continuation = UnsafeContinuation<StreamSignal<Element>, Never>

  private let machine: Mutex<StreamMachine<StreamSignal<Element>, Continuation>>

  init(policy: StreamBuffering) { machine = Mutex(StreamMachine(policy: policy)) }

  func receive(_ signal: StreamSignal<Element>) {
    switch signal {
    case .element:
      let offer = machine.withLock { $0.offer(signal) }
      if case .resume(let waiter) = offer { waiter.resume(returning: signal) }
      withExtendedLifetime(offer) {}
    case .finished: machine.withLock { $0.finish() }?.resume(returning: .finished)
    }
  }

  nonisolated(nonsending) func next(onCancel: @Sendable () -> Void) async -> StreamSignal<Element> {
    if !Task.isCancelled, case .element(let signal) = machine.withLock({ $0.take(orWait: nil) }) {
      return signal
    }
    return await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        switch machine.withLock({ $0.take(orWait: continuation) }) {
        case .element(let signal): continuation.resume(returning: signal)
        case .end: continuation.resume(returning: .finished)
        case .wait(let earlier): earlier?.resume(returning: .finished)
        }
      }
    } onCancel: {
      let (waiter, dropped) = machine.withLock { $0.cancel() }
      waiter?.resume(returning: .finished)
      withExtendedLifetime(dropped) {}
      onCancel()
    }
  }
}
