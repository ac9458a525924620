import Synchronization

/// The number of changes of a store, which is read without its lock: an equal number says that a value
/// is still that of the store.
package struct StoreVersion: ~Copyable, Sendable {
  private let number = Atomic(0)

  /// Stores the number after a change, under the lock of the store. It is `nil` while not every thread
  /// reads the same.
  func publish(_ new: Int?) { number.store(new ?? -1, ordering: .releasing) }

  /// Whether the store is what it was when it had a version.
  package func isAt(_ version: Int) -> Bool { number.load(ordering: .acquiring) == version }
}
