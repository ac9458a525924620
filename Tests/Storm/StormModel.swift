import Operation
import SharingOperation

/// The wrappers and the broadcast that all workers of a storm use, and readers that must miss no change.
struct StormModel: Sendable {
  typealias Wrapper = SharedQuery<StormRequests.State>

  /// Only the first one is ever without a store.
  let wrappers: [Wrapper]
  let broadcast: Broadcast<Int>
  private let logs: [StormLog]
  private let watchers: [Task<Void, Never>]
  private let received: [StormLog]
  private let subscriptions: [OperationSubscription]

  init(_ requests: StormRequests, client: OperationClient) {
    let wrappers = (0..<6).map { Wrapper(requests.query($0), client: client) }
    let logs = wrappers.map { _ in StormLog() }
    watchers = zip(wrappers, logs).map { wrapper, log in
      Task { for await state in wrapper.states { _ = log.append(state.print) } }
    }
    let broadcast = Broadcast<Int>()
    let received = [StormLog(), StormLog()]
    subscriptions = received.map { log in broadcast.subscribe { _ = log.append($0) } }
    (self.wrappers, self.logs, self.broadcast, self.received) = (
      wrappers, logs, broadcast, received
    )
  }

  func cancelRuns() { for wrapper in wrappers { wrapper.cancel() } }

  /// Ends the readers. Returns what they have missed.
  func end() async -> [String] {
    var failures: [String] = []
    for (wrapper, log) in zip(wrappers, logs) {
      if await !becomesTrue({ log.all.last == wrapper.state.print }) {
        failures.append("a stream of \(wrapper) has not received its last state")
      }
    }
    for watcher in watchers {
      watcher.cancel()
      await watcher.value
    }
    if received[0].all != received[1].all {
      failures.append("two subscribers of a broadcast have not received the same elements")
    }
    for subscription in subscriptions { subscription.cancel() }
    if broadcast.subscriberCount != 0 {
      failures.append("a broadcast has \(broadcast.subscriberCount) subscribers")
    }
    return failures
  }
}
