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

  nonisolated(nonsending) func next() async -> Element? {
    await inbox.next { [subscription] in subscription.cancel() }
  }

  deinit { subscription.cancel() }
}

/// The buffer that a reader and its source share.
///
/// It is separate from the reader, so that the source does not retain the reader. The lock guards the
/// machine; continuations are resumed without it.
private final class StreamInbox<Element: Sendable>: Sendable {
  private typealias Continuation = UnsafeContinuation<Element?, Never>

  private let machine: Mutex<StreamMachine<Element, Continuation>>

  init(policy: StreamBuffering) { machine = Mutex(StreamMachine(policy: policy)) }

  func receive(_ signal: StreamSignal<Element>) {
    switch signal {
    case .element(let element):
      let offer = machine.withLock { $0.offer(element) }
      if case .resume(let waiter) = offer { waiter.resume(returning: element) }
      withExtendedLifetime(offer) {}
    case .finished: machine.withLock { $0.finish() }?.resume(returning: nil)
    }
  }

  nonisolated(nonsending) func next(onCancel: @Sendable () -> Void) async -> Element? {
    if !Task.isCancelled, case .element(let element) = machine.withLock({ $0.take(orWait: nil) }) {
      return element
    }
    return await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        switch machine.withLock({ $0.take(orWait: continuation) }) {
        case .element(let element): continuation.resume(returning: element)
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
