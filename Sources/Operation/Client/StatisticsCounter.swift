import ReactiveStreams
import Synchronization

/// Counts the events of a client.
final class StatisticsCounter: Sendable {
  /// The statistics for each length of prefixes; 0 stands for none.
  private let counted = Mutex([0: OperationStatistics()])
  private let subscription = LastElement<OperationSubscription>()

  init(of events: EventSender) {
    subscription.set(events.subscribe { [weak self] event in self?.add(event) })
  }

  func statistics(prefixLength: Int) -> OperationStatistics {
    counted.withLock { counted in
      if let present = counted[prefixLength] { return present }
      let new = OperationStatistics(byKind: counted[0]?.byKind ?? [:])
      counted[prefixLength] = new
      return new
    }
  }

  private func add(_ event: OperationClientEvent) {
    counted.withLock { counted in
      // A copy: the iterator of a dictionary would have each change copy all counts.
      for length in Array(counted.keys) { counted[length]?.add(event, prefixLength: length) }
    }
  }
}

extension OperationClient {
  /// The counts of what the stores of this client have done since this was read first. Until then
  /// nothing is counted, and counting costs nothing.
  public var statistics: OperationStatistics { statistics(prefixLength: 0) }

  /// Returns the statistics with counts for each path of a length. These begin with the first call for this
  /// length; the counts by kind begin with the first read of any statistics. The counts of a path are kept
  /// when its stores are removed: about 200 bytes for each path of this length that has ever run.
  ///
  /// - Parameter length: The number of elements. A number below one is reported, and one is used.
  public func statistics(byPrefixOfLength length: Int) -> OperationStatistics {
    let length = length.checkedLimit(for: "The length of the paths to count")
    return statistics(prefixLength: length)
  }

  private func statistics(prefixLength: Int) -> OperationStatistics {
    let counter =
      statisticsCounter.value ?? statisticsCounter.setIfNone(StatisticsCounter(of: hub.events))
    return counter.statistics(prefixLength: prefixLength)
  }
}
