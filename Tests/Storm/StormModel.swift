import Observation
import Operation
import SharingOperation

/// The wrappers and the broadcast that all workers of a storm use, and readers that must miss no change.
struct StormModel: Sendable {
  typealias Wrapper = SharedQuery<StormRequests.State>

  /// Only the first one is ever without a store.
  let wrappers: [Wrapper]
  let broadcast: Broadcast<Int>
  /// What has been received last of each wrapper.
  private let logs: [(wrapper: Wrapper, log: StormLog)]
  private let watchers: [Task<Void, Never>]
  private let received: [StormLog]
  private let subscriptions: [OperationSubscription]

  init(_ requests: StormRequests, client: OperationClient) {
    let wrappers = (0..<6).map { Wrapper(requests.query($0), client: client) }
    let streamed = wrappers.map { ($0, StormLog()) }
    let tracked = wrappers.map { ($0, StormLog()) }
    let readers = streamed.map { wrapper, log in
      Task { for await state in wrapper.states { _ = log.append(state.print) } }
    }
    watchers = readers + tracked.map { wrapper, log in Task { await Self.track(wrapper, in: log) } }
    logs = streamed + tracked
    let broadcast = Broadcast<Int>()
    let received = [StormLog(), StormLog()]
    subscriptions = received.map { log in broadcast.subscribe { _ = log.append($0) } }
    (self.wrappers, self.broadcast, self.received) = (wrappers, broadcast, received)
  }

  /// Reads a wrapper again after each change that it reports to the observation, until the task is cancelled.
  private static func track(_ wrapper: Wrapper, in log: StormLog) async {
    let (changes, change) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    change.yield()
    for await _ in changes {
      let state = withObservationTracking {
        wrapper.state.print
      } onChange: {
        change.yield()
      }
      _ = log.append(state)
      // The observation begins after the read, so it does not report what has changed in between.
      if wrapper.state.print != state { change.yield() }
    }
  }

  func cancelRuns() { for wrapper in wrappers { wrapper.cancel() } }

  /// Ends the readers. Returns what they have missed.
  func end() async -> [String] {
    var failures: [String] = []
    for (wrapper, log) in logs {
      if await !becomesTrue({ log.all.last == wrapper.state.print }) {
        failures.append("a reader of \(wrapper) has not received its last state")
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
