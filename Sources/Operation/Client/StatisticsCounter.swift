import ReactiveStreams
import Synchronization

/// Counts the events of a client from the first time that its statistics are read.
final class StatisticsCounter: Sendable {
  /// The statistics for each length of prefixes; 0 stands for none.
  private let counted = Mutex<[Int: OperationStatistics]>([:])
  private let subscription = LastElement<OperationSubscription>()

  func read(prefixLength: Int, from events: EventMeter) -> OperationStatistics {
    let (statistics, isFirst) = counted.withLock { counted in
      if let present = counted[prefixLength] { return (present, false) }
      // The kinds are counted since the first read, of whatever length.
      let other = counted.values.first
      let new = OperationStatistics(byKind: other?.byKind ?? [:])
      counted[prefixLength] = new
      return (new, other == nil)
    }
    if isFirst {
      subscription.set(events.subscribe { [weak self] event in self?.add(event) })
    }
    return statistics
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
  public var statistics: OperationStatistics {
    statisticsCounter.read(prefixLength: 0, from: hub.events)
  }

  /// Returns the statistics with counts for each path of a length. These begin with the first call for this
  /// length; the counts by kind begin with the first read of any statistics.
  ///
  /// - Parameter length: The number of elements. A number below one is reported, and one is used.
  public func statistics(byPrefixOfLength length: Int) -> OperationStatistics {
    let length = length.checkedLimit(for: "The length of the paths to count")
    return statisticsCounter.read(prefixLength: length, from: hub.events)
  }
}
