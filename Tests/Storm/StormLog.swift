import Operation
import Synchronization

/// The states that one subscriber of a store has received, as their last prints.
final class StormLog: Sendable {
  private let prints = Mutex([Int]())
  private let count = Atomic(0)

  /// Appends a print. Returns the number of prints so far.
  func append(_ print: Int) -> Int {
    prints.withLock { prints in
      prints.append(print)
      if prints.count > 256 { prints.removeFirst(128) }
    }
    return count.wrappingAdd(1, ordering: .relaxed).newValue
  }

  var all: [Int] { prints.withLock { $0 } }
}

extension OperationState where StateValue: Hashable {
  /// A hash of the public properties of the state.
  var print: Int {
    var hasher = Hasher()
    hasher.combine(currentValue)
    hasher.combine(valueUpdateCount)
    hasher.combine(errorUpdateCount)
    hasher.combine(isLoading)
    return hasher.finalize()
  }
}

extension OperationState {
  /// A hash of the public properties of the state without the value.
  var coarsePrint: Int {
    var hasher = Hasher()
    hasher.combine(valueUpdateCount)
    hasher.combine(errorUpdateCount)
    hasher.combine(isLoading)
    return hasher.finalize()
  }
}

/// A subscriber that is not cancelled before the end of a storm.
struct StormWitness: Sendable {
  let store: ObjectIdentifier
  let path: OperationPath
  let log: StormLog
  let subscription: OperationSubscription
  /// Returns the print of the present state of the store.
  let present: @Sendable () -> Int
  /// Cancels the runs of the store, which may be removed from the client.
  let cancelRuns: @Sendable () -> Void
}

/// A store that must be deallocated when the client and all subscribers are released.
struct StormTrace: Sendable {
  private final class Box: Sendable {
    weak let store: (any AnyObject & Sendable)?
    init(_ store: any AnyObject & Sendable) { self.store = store }
  }

  let path: OperationPath
  private let box: Box

  init(_ store: any AnyObject & Sendable, at path: OperationPath) {
    self.path = path
    box = Box(store)
  }

  var isAlive: Bool { box.store != nil }
}

/// Waits until a condition is true. Returns `false` if it is not after many turns of other tasks.
func becomesTrue(_ condition: () -> Bool) async -> Bool {
  for _ in 0..<100_000 {
    if condition() { return true }
    await Task.yield()
  }
  return condition()
}
