public import ReactiveStreams

extension OperationClient {
  /// The numbers of queries, paginated requests and mutations of this client that are running,
  /// paused, or have failed.
  ///
  /// A read inside `withObservationTracking` is tracked.
  public var activity: OperationActivity { hub.activity.activity }

  /// A stream of the activity: the current one, then each change. A slow reader gets the newest one.
  public var activities: StateStream<OperationActivity> {
    StateStream(hub.activity.source(until: hub.closing), areEqual: ==)
  }

  /// The events that are sent after an iterator of the stream is made. Of unread events the newest
  /// thousand are kept.
  public var events: EventStream<OperationClientEvent> { events(buffering: .newest(1_000)) }

  /// Returns a stream of the events that are sent after its iterator is made.
  ///
  /// - Parameter buffering: The policy for events that arrive faster than the reader takes them.
  public func events(buffering: StreamBuffering) -> EventStream<OperationClientEvent> {
    EventStream(hub.events.source(until: hub.closing), buffering: buffering)
  }

  /// A broadcast that ends when the client is shut down.
  package var closing: Broadcast<Never> { hub.closing }

  /// Sends each event to a logger until the subscription ends. Nothing is dropped.
  ///
  /// - Parameter logger: Called in the order of the events, see ``OperationLogger/log(_:)``.
  public func log(to logger: some OperationLogger) -> OperationSubscription {
    hub.events.subscribe { logger.log($0) }
  }

  /// Returns the current contents of the client as plain data.
  ///
  /// Each store is copied by itself, so the stores are not necessarily those of one instant. It
  /// costs the number of stores.
  public func snapshot() -> OperationClientSnapshot {
    let now = clock.now()
    let stores = stores(matching: []).map { $0.store.snapshot(at: now) }
    return OperationClientSnapshot(
      date: now, stores: stores.sorted { $0.path.lexicographicallyPrecedes($1.path) })
  }
}
