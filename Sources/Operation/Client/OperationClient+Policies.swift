/// What `ensure` does if there is a value that is out of date.
public enum StaleValuePolicy: Sendable, Hashable {
  /// It fetches, and returns the new value.
  case fetches
  /// It returns the old value at once, and fetches in the background.
  case revalidates
}

/// The stores that run again after an invalidation.
public enum InvalidatedStores: Sendable, Hashable {
  /// Those with subscribers.
  case observed
  /// None. A run that is in flight for subscribers is still followed by another one.
  case nothing
  /// Those with subscribers, and all other ones that match and are no mutations.
  case all
}
