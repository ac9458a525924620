import Observation
import Operation
import SharingOperation

/// The wrappers and the broadcast that all workers of a storm use, and readers that must miss no change.
struct StormModel: Sendable {
  typealias Wrapper = SharedQuery<StormRequests.State>

  /// Only the first one is ever without a store.
  let wrappers: [Wrapper]
  let broadcast: Broadcast<Int>
  /// What streams and observing readers have received of each wrapper.
  private let streamed: [(wrapper: Wrapper, log: StormLog)]
  private let tracked: [(wrapper: Wrapper, log: StormLog)]
  private let readers: [Task<Void, Never>]
  private let trackers: [Task<Void, Never>]
  private let received: [StormLog]
  private let subscriptions: [OperationSubscription]

  init(_ requests: StormRequests, client: OperationClient) {
    let wrappers = (0..<6).map { Wrapper(requests.query($0), client: client) }
    streamed = wrappers.map { ($0, StormLog()) }
    tracked = wrappers.map { ($0, StormLog()) }
    readers = streamed.map { wrapper, log in
      Task { for await state in wrapper.states { _ = log.append(state.print) } }
    }
    trackers = tracked.map { wrapper, log in Task { await Self.track(wrapper, in: log) } }
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
  ///
  /// - Parameter isShutDown: Whether the client was shut down, which has ended the streams.
  func end(isShutDown: Bool) async -> [String] {
    var failures: [String] = []
    for (wrapper, log) in isShutDown ? tracked : streamed + tracked {
      if await !becomesTrue({ log.all.last == wrapper.state.print }) {
        failures.append("a reader of \(wrapper) has not received its last state")
      }
    }
    for task in isShutDown ? trackers : readers + trackers { task.cancel() }
    for task in readers + trackers { await task.value }
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
