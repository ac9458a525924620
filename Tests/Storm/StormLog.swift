import Operation
import Synchronization

/// What one subscriber of a store has seen: the last prints of its states.
final class StormLog: Sendable {
  private let prints = Mutex([Int]())
  private let count = Atomic(0)

  /// Appends a print. Returns how many there have been.
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
  /// A number for what can be told apart from outside.
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
  /// A number for what can be told apart from outside, but for the value.
  var coarsePrint: Int {
    var hasher = Hasher()
    hasher.combine(valueUpdateCount)
    hasher.combine(errorUpdateCount)
    hasher.combine(isLoading)
    return hasher.finalize()
  }
}

/// A subscriber that is left at the end of a storm.
struct StormWitness: Sendable {
  let store: ObjectIdentifier
  let path: OperationPath
  let log: StormLog
  let subscription: OperationSubscription
  /// The print of the state of the store, now.
  let present: @Sendable () -> Int
  /// Cancels the runs of the store, which may have left the client.
  let cancelRuns: @Sendable () -> Void
}

/// A store that must be gone when nobody holds it.
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
