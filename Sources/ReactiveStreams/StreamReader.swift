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
    while let item = await inbox.next(onCancel: { [subscription] in subscription.cancel() }) {
      if !dropsOutdated || item.epoch?.isOver != true { return item.element }
    }
    return nil
  }

  deinit { subscription.cancel() }
}

/// An element for a reader, and its epoch.
private struct StreamItem<Element: Sendable>: Sendable {
  let element: Element
  let epoch: StreamEpoch?
}

/// The buffer that a reader and its source share.
///
/// It is separate from the reader, so that the source does not retain the reader. The lock guards the
/// machine; continuations are resumed without it.
private final class StreamInbox<Element: Sendable>: Sendable {
  // Every wait for an element makes one: the benchmark state stream.
  private typealias Continuation = UnsafeContinuation<StreamItem<Element>?, Never>

  private let machine: Mutex<StreamMachine<StreamItem<Element>, Continuation>>

  init(policy: StreamBuffering) { machine = Mutex(StreamMachine(policy: policy)) }

  func receive(_ signal: StreamSignal<Element>) {
    switch signal {
    case .element(let element, let epoch):
      let item = StreamItem(element: element, epoch: epoch)
      let offer = machine.withLock { $0.offer(item) }
      if case .resume(let waiter) = offer { waiter.resume(returning: item) }
      withExtendedLifetime(offer) {}
    case .finished: machine.withLock { $0.finish() }?.resume(returning: nil)
    }
  }

  nonisolated(nonsending) func next(onCancel: @Sendable () -> Void) async -> StreamItem<Element>? {
    if !Task.isCancelled, case .element(let item) = machine.withLock({ $0.take(orWait: nil) }) {
      return item
    }
    return await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        switch machine.withLock({ $0.take(orWait: continuation) }) {
        case .element(let item): continuation.resume(returning: item)
        case .end: continuation.resume(returning: nil)
        case .wait(let earlier): earlier?.resume(returning: nil)
        }
      }
    } onCancel: {
      let (waiter, dropped) = machine.withLock { $0.cancel() }
      waiter?.resume(returning: nil)
      withExtendedLifetime(dropped) {}
      onCancel()
    }
  }
}
