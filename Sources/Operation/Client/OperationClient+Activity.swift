public import ReactiveStreams

extension OperationClient {
  /// How many queries, pages and mutations of this client are running, paused, or have failed.
  ///
  /// A read inside of `withObservationTracking` is tracked.
  public var activity: OperationActivity { hub.activity.activity }

  /// The activity of this client, as it is and whenever it changes; the newest one wins.
  public var activities: StateStream<OperationActivity> {
    StateStream(hub.activity.source, areEqual: ==)
  }
}
