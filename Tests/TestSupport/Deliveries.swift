package import ReactiveStreams

extension DeliveryQueue {
  /// Performs the queued deliveries, if no other one is in progress.
  package mutating func deliver() { deliver(beginDraining()) }

  /// Performs deliveries until the queue is empty, beginning with one that was taken from it.
  package mutating func deliver(_ first: Delivery<Event>) {
    var delivery = first
    while delivery.hasEvent {
      delivery.perform()
      _ = takeNext(into: &delivery)
    }
  }
}
