import ReactiveStreams

/// The machine of an observer that watches only while somebody listens: who listens, what they were
/// told, and which watch there is.
struct NetworkWatchMachine<Watch: Sendable>: DeliveryMachine {
  typealias Status = NetworkConnectionStatus

  private enum Phase: Sendable {
    /// Nobody listens, and nothing is watched.
    case idle
    /// The first subscriber opens a watch; what others have read meanwhile is what they know.
    case opening(seen: Set<Status>)
    /// Every change comes in. The last subscriber may be gone, until the watch is taken.
    case watching(Watch, Status)
    /// There are subscribers, but nothing can be watched.
    case unavailable
  }

  var deliveries = DeliveryQueue<Status>()
  private var phase = Phase.idle
  private var hasReported = false

  /// The status, if it is known without asking.
  var status: Status? {
    switch phase {
    case .idle, .opening: nil
    case .watching(_, let status): status
    case .unavailable: .connected
    }
  }

  /// Adds a subscriber; tells whether the caller has to open a watch now.
  mutating func subscribe(_ subscriber: Subscriber<Status>) -> (id: UInt64, opens: Bool) {
    let id = deliveries.subscribe(subscriber)
    guard case .idle = phase else { return (id, false) }
    phase = .opening(seen: [])
    return (id, true)
  }

  /// Takes what somebody found out by asking, and gives what is to be believed.
  mutating func read(_ asked: Status) -> Status {
    if let status { return status }
    if case .opening(let seen) = phase { phase = .opening(seen: seen.union([asked])) }
    return asked
  }

  /// The watch is open; tells whether nobody wants it any more.
  mutating func opened(_ watch: Watch, _ status: Status) -> Bool {
    guard case .opening(let seen) = phase else {
      preconditionFailure("a watch was opened in \(phase)")
    }
    phase = .watching(watch, status)
    tell(status, after: seen)
    return deliveries.subscriberCount == 0
  }

  mutating func update(_ status: Status) {
    guard case .watching(let watch, let old) = phase else { return }
    phase = .watching(watch, status)
    tell(status, after: [old])
  }

  /// Nothing can be watched: gives the watch to end, and counts as a connection.
  mutating func fail() -> Watch? {
    defer { phase = deliveries.subscriberCount == 0 ? .idle : .unavailable }
    switch phase {
    case .idle, .unavailable: return nil
    case .opening(let seen):
      tell(.connected, after: seen)
      return nil
    case .watching(let watch, let old):
      tell(.connected, after: [old])
      return watch
    }
  }

  /// Tells whether a failure is the first one, which is reported.
  mutating func isFirstReport() -> Bool {
    defer { hasReported = true }
    return !hasReported
  }

  /// Removes a subscriber and gives it back, and whether it was the last one.
  mutating func unsubscribe(_ id: UInt64) -> (subscriber: Subscriber<Status>?, isLast: Bool) {
    let subscriber = deliveries.unsubscribe(id)
    return (subscriber, subscriber != nil && deliveries.subscriberCount == 0)
  }

  /// Gives the watch to end, if still nobody listens.
  mutating func takeUnused() -> Watch? {
    guard deliveries.subscriberCount == 0 else { return nil }
    switch phase {
    case .idle, .opening: return nil
    case .unavailable:
      phase = .idle
      return nil
    case .watching(let watch, _):
      phase = .idle
      return watch
    }
  }

  /// Tells a status to those who may have seen another one.
  private mutating func tell(_ status: Status, after seen: Set<Status>) {
    if seen.contains(where: { $0 != status }) { deliveries.append(status) }
  }
}
